#include "io/hdf5/layout.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "io/files/atomic_file.h"

namespace syncline::io {
namespace {

// Headers and small arrays between two large arrays are written in pieces of at most this size.
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

// HDF5's handle for an open file. HDF5 fills the base.
struct LaidOutFile : H5FD_t {
  Hdf5Layout* layout = nullptr;
  haddr_t end = 0;
};

LaidOutFile& laid_out(H5FD_t* file) { return *static_cast<LaidOutFile*>(file); }
const LaidOutFile& laid_out(const H5FD_t* file) { return *static_cast<const LaidOutFile*>(file); }

// Exceptions must not pass through HDF5, which is C.
template <class Action>
herr_t guarded(Action action) noexcept {
  try {
    action();
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const void* info = H5Pget_driver_info(access);
  if (info == nullptr) return nullptr;
  LaidOutFile* file = nullptr;
  guarded([&] { file = new LaidOutFile; });
  if (file != nullptr) file->layout = *static_cast<Hdf5Layout* const*>(info);
  return file;
}

herr_t close_file(H5FD_t* file) {
  delete &laid_out(file);
  return 0;
}

// HDF5 then allocates small metadata together, and small arrays together.
herr_t query(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t end_of(const H5FD_t* file, H5FD_mem_t) { return laid_out(file).end; }

herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  laid_out(file).end = end;
  return 0;
}

herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* bytes) {
  laid_out(file).layout->read(address, {static_cast<std::byte*>(bytes), size});
  return 0;
}

herr_t write_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* bytes) {
  return guarded([&] { laid_out(file).layout->write(address, {static_cast<const std::byte*>(bytes), size}); });
}

// HDF5 1.14 refuses a class without its version and its number; earlier versions have no such members.
template <class Driver>
void set_version(Driver& driver) {
  if constexpr (requires { driver.version; }) {
    driver.version = 1;  // H5FD_CLASS_VERSION
    driver.value = 511;  // the last number that HDF5 leaves to programs without a registered driver
  }
}

hid_t register_driver() {
  H5FD_class_t driver{};
  set_version(driver);
  driver.name = "syncline_layout";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Hdf5Layout*);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = end_of;
  driver.set_eoa = set_end;
  driver.get_eof = end_of;
  driver.read = read_file;
  driver.write = write_file;
  const H5FD_mem_t kinds[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kinds), std::end(kinds), driver.fl_map);
  return H5FDregister(&driver);
}

}  // namespace

void Hdf5Layout::use_in(hid_t access, const Hdf5Location& location) {
  static const hid_t driver = register_driver();
  const Hdf5Layout* self = this;
  checked(H5Pset_driver(access, checked(driver, location, "register the file driver"), &self), location,
          "choose the file driver");
}

void Hdf5Layout::write(std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t within = address % kPage;
    const std::size_t size = std::min<std::size_t>(kPage - within, bytes.size());
    std::memcpy(pages_[address - within].data() + within, bytes.data(), size);  // a new page is all zeros
    address += size;
    bytes = bytes.subspan(size);
  }
}

void Hdf5Layout::read(std::uint64_t address, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::uint64_t within = address % kPage;
    const std::size_t size = std::min<std::size_t>(kPage - within, bytes.size());
    const auto page = pages_.find(address - within);
    if (page == pages_.end()) std::memset(bytes.data(), 0, size);
    else std::memcpy(bytes.data(), page->second.data() + within, size);
    address += size;
    bytes = bytes.subspan(size);
  }
}

void Hdf5Layout::write_to(AtomicFile& file, std::uint64_t size) const {
  std::vector<std::byte> piece;
  const auto write_between = [&](std::uint64_t begin, std::uint64_t end) {
    for (; begin < end; begin += piece.size()) {
      piece.resize(std::min(kPiece, end - begin));
      read(begin, piece);
      file.write(begin, piece);
    }
  };
  std::uint64_t begin = 0;
  for (const auto& [address, length] : excluded_) {
    write_between(begin, address);
    begin = address + length;
  }
  write_between(begin, size);
}

}  // namespace syncline::io
