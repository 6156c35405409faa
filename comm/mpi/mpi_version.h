// The MPI library's version, for reports. Call it at any time, also before MPI is initialised.
#pragma once

#include <string>

namespace syncline::comm {

struct MpiVersion {
  std::string built;   // "4.1.4": from the headers, which are Open MPI's
  std::string loaded;  // from the loaded library
};

MpiVersion mpi_version();

}  // namespace syncline::comm
