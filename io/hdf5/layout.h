// An HDF5 file that is laid out in memory and put on the disk by us: a driver below HDF5 that keeps what HDF5 writes
// (headers, attributes, small arrays) in memory, page by page, and holds nothing for large arrays, whose places HDF5
// only reserves.
//
// HDF5 is kept away from the disk because it never calls fsync, reports a full disk as late as at H5Fclose or not at
// all, and may crash at exit after a failed write. Arrays go from where they lie to the disk in one pass, which takes
// their digest too. Memory: that of the headers.
//
// Needs a live Hdf5Session. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "io/hdf5/handle.h"

namespace syncline::io {

class DurableFile;

class Hdf5Layout {
 public:
  Hdf5Layout() = default;
  Hdf5Layout(const Hdf5Layout&) = delete;
  Hdf5Layout& operator=(const Hdf5Layout&) = delete;

  // Makes files that are opened with `access` keep their bytes here. The layout must outlive them.
  void use_in(hid_t access, const Hdf5Place& place);

  void write(std::uint64_t address, std::span<const std::byte> bytes);
  // What was never written is zero.
  void read(std::uint64_t address, std::span<std::byte> bytes) const;

  // Marks bytes that the caller writes to the disk himself.
  void exclude(std::uint64_t address, std::uint64_t size) { excluded_[address] = size; }
  // Everything else of the first `size` bytes.
  void write_to(DurableFile& file, std::uint64_t size) const;

 private:
  static constexpr std::size_t kPage = 4096;

  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;  // by address
  std::map<std::uint64_t, std::uint64_t> excluded_;              // sizes by address
};

}  // namespace syncline::io
