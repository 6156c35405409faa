// The MPI library's version, for people. Safe to call at any time, before MPI is initialised too.
#pragma once

#include <string>

namespace syncline::comm {

struct MpiVersion {
  std::string built;   // "4.1.4": the headers', which are Open MPI's
  std::string loaded;  // the library's
};

MpiVersion mpi_version();

}  // namespace syncline::comm
