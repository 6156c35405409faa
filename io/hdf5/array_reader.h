// ArrayReader: reads and checks arrays from HDF5 datasets, several at a time.
//
// An array stored in one piece, as Syncline writes all arrays, is read directly into its memory and digested block by
// block while the block is in the processor's cache. Most of that time goes to the kernel, which copies and clears new
// memory, so several threads read, each one array at a time. HDF5 reads all other arrays, on the caller's thread.
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
  // Throws IoError as header_of does. finish() fills the memory of the array returned.
  StoredArray begin(const Hdf5Group& dataset);
  // Reads all arrays begun; their files must still be open. Throws IoError for the first array, in order, that cannot
  // be read or does not match its digest or CRC-32.
  void finish();

 private:
  struct Pending {
    StoredArray stored;
    Hdf5Location location;
    std::uint64_t address = 0;
    int descriptor = -1;         // of the file
    std::int64_t checksum = -1;  // CRC-32 of format 1; -1: none
  };

  static void read(Pending& pending);

  std::vector<Pending> pending_;
};

// Reads and checks one array.
StoredArray read_array(const Hdf5Group& dataset);

}  // namespace syncline::io
