// Arrays from HDF5 datasets: checked, and many of them at once by several threads.
//
// An array whose bytes lie in one piece of the file, as all of ours do, is read straight into its memory and digested
// block by block while it is in the processor's cache. One thread spends most of that time in the kernel, copying and
// clearing new memory; so several read, each an array at a time. Anything else goes through HDF5, on the caller's
// thread.
//
// Needs a live Hdf5Session. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "io/hdf5/array.h"

namespace syncline::io {

struct StoredArray {
  ArrayHeader header;
  Array value;
};

class ArrayReader {
 public:
  // Throws IoError as header_of does. The values are there after finish(); the array's memory is the one returned.
  StoredArray begin(const Hdf5Group& dataset);
  // Reads all that has begun. Throws IoError for the first array in order that cannot be read, or whose bytes do not
  // match their digest or CRC-32. The files must still be open.
  void finish();

 private:
  struct Pending {
    StoredArray stored;
    Hdf5Place place;
    std::uint64_t address = 0;
    int descriptor = -1;         // the file's
    std::int64_t checksum = -1;  // CRC-32 of format 1; -1 if there is none
  };

  static void read(Pending& pending);

  std::vector<Pending> pending_;
};

// One array, read and checked.
StoredArray read_array(const Hdf5Group& dataset);

}  // namespace syncline::io
