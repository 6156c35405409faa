// The version of HDF5, for reports.
#pragma once

#include <string>

namespace syncline::io {

struct Hdf5Version {
  std::string built;   // of the headers, "1.10.8"
  std::string loaded;  // of the library
};

// Thread-safe and needs no Hdf5Session: it changes no HDF5 state. Throws IoError.
Hdf5Version hdf5_version();

}  // namespace syncline::io
