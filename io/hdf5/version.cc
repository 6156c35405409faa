#include "io/hdf5/version.h"

#include <hdf5.h>

#include "syncline/error.h"

namespace syncline::io {

Hdf5Version hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  if (H5get_libversion(&major, &minor, &release) < 0) fail<IoError>("HDF5: H5get_libversion failed");
  return {join_text(H5_VERS_MAJOR, '.', H5_VERS_MINOR, '.', H5_VERS_RELEASE),
          join_text(major, '.', minor, '.', release)};
}

}  // namespace syncline::io
