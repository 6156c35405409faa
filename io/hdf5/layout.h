// Hdf5Layout: an HDF5 file driver that keeps what HDF5 writes (headers, attributes, small arrays) in pages of memory,
// and stores nothing for large arrays, for which HDF5 only reserves space. The caller writes both to the disk.
//
// HDF5 does not write to the disk itself, because it never calls fsync, reports a full disk only at H5Fclose or not at
// all, and may crash at exit after a failed write. Large arrays go from the caller's memory to the disk in one pass,
// which also digests them. Memory use: headers and small arrays.
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

class AtomicFile;

class Hdf5Layout {
 public:
  Hdf5Layout() = default;
  Hdf5Layout(const Hdf5Layout&) = delete;
  Hdf5Layout& operator=(const Hdf5Layout&) = delete;

  // Files opened with `access` then keep their bytes here. The layout must outlive them.
  void use_in(hid_t access, const Hdf5Location& location);

  void write(std::uint64_t address, std::span<const std::byte> bytes);
  // Bytes never written read as zero.
  void read(std::uint64_t address, std::span<std::byte> bytes) const;

  // Marks bytes that the caller writes to the disk.
  void exclude(std::uint64_t address, std::uint64_t size) { excluded_[address] = size; }
  // Writes all other bytes of the first `size` to `file`.
  void write_to(AtomicFile& file, std::uint64_t size) const;

 private:
  static constexpr std::size_t kPage = 4096;

  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;  // by address
  std::map<std::uint64_t, std::uint64_t> excluded_;              // sizes by address
};

}  // namespace syncline::io
