// HDF5's version, for people.
#pragma once

#include <string>

namespace syncline::io {

struct Hdf5Version {
  std::string built;   // "1.10.8": the headers'
  std::string loaded;  // the library's
};

// Takes no part in HDF5's state; safe to call from any thread. Throws IoError.
Hdf5Version hdf5_version();

}  // namespace syncline::io
