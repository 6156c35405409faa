#include "io/hdf5/array_reader.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>

#include "base/affinity.h"
#include "base/block_signals.h"
#include "io/files/digest.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr const char* kChecksum = "crc32";
// Block that is read, then digested while it is still in the processor's cache.
constexpr std::size_t kBlock = std::size_t{1} << 18;
// Fewer bytes than this do not pay for a thread's start.
constexpr std::size_t kBytesPerThread = std::size_t{8} << 20;
constexpr std::size_t kMostThreads = 8;

int descriptor_of(const Hdf5Group& dataset) {
  const Hdf5Handle file =
      checked(H5Iget_file_id(dataset.id()), H5Fclose, dataset.location(), "find the dataset's file");
  void* handle = nullptr;
  checked(H5Fget_vfd_handle(file.get(), H5P_DEFAULT, &handle), dataset.location(), "find the file's descriptor");
  return *static_cast<const int*>(handle);
}

// Reads `bytes` from the file; returns their digest.
std::string read_bytes(int descriptor, std::uint64_t address, std::span<std::byte> bytes,
                       const Hdf5Location& location) {
  RunningDigest digest;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::span<std::byte> block = bytes.subspan(begin, std::min(kBlock, bytes.size() - begin));
    const ssize_t got = ::pread(descriptor, block.data(), block.size(), static_cast<off_t>(address + begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_at(location, join_text("cannot be read: ", std::strerror(errno)));
    if (got == 0)
      fail_at(location, join_text("is truncated: the file ends after ", begin, " of ", bytes.size(), " bytes"));
    digest.add(block.first(static_cast<std::size_t>(got)));
    begin += static_cast<std::size_t>(got);
  }
  return digest.text();
}

std::uint32_t checksum_of(const Array& value) {
  return static_cast<std::uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(value.raw()), value.bytes()));
}

[[noreturn]] void fail_damaged(const Hdf5Location& location, const char* kind, const auto& found, const auto& written) {
  fail_at(location, join_text("is damaged: its bytes have ", kind, " ", found, ", but ", written,
                              " was written; use another checkpoint"));
}

// Files written by Keras carry neither digests nor checksums.
void verify(const StoredArray& stored, const std::string& digest, std::int64_t checksum, const Hdf5Location& location) {
  const auto& [header, value] = stored;
  if (!header.digest.empty() && digest != header.digest) fail_damaged(location, "XXH3", digest, header.digest);
  if (header.digest.empty() && checksum >= 0 && checksum_of(value) != checksum)
    fail_damaged(location, "CRC-32", checksum_of(value), checksum);
  // Reading a byte other than 0 and 1 as a bool is undefined.
  if (header.dtype != DType::kBool) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.raw());
  if (std::any_of(bytes, bytes + value.bytes(), [](unsigned char byte) { return byte > 1; }))
    fail_at(location, "is damaged: it holds a bool that is neither true nor false");
}

// Calls work(0) to work(count - 1), in any order, on up to `threads` threads, this one included.
template <class Work>
void for_each_in_threads(std::size_t count, std::size_t threads, Work work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  try {
    const BlockSignals block;
    while (helpers.size() + 1 < threads) helpers.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads can start; the running ones do the work.
  }
  run();
}

}  // namespace

StoredArray ArrayReader::begin(const Hdf5Group& dataset) {
  Pending pending{{header_of(dataset), {}}, dataset.location()};
  auto& [header, value] = pending.stored;
  value = Array::uninitialized(header.dtype, header.shape);
  if (header.digest.empty() && dataset.has_attribute(kChecksum))
    pending.checksum = static_cast<std::uint32_t>(dataset.read_unsigned(kChecksum));
  if (const std::optional<std::uint64_t> address = place_of_bytes(dataset, header)) {
    pending.address = *address;
    pending.descriptor = descriptor_of(dataset);
    pending_.push_back(pending);
  } else {
    read_converted(dataset, value);
    verify(pending.stored, content_digest({value.raw(), value.bytes()}), pending.checksum, pending.location);
  }
  return std::move(pending.stored);
}

void ArrayReader::read(Pending& pending) {
  Array& value = pending.stored.value;
  const std::string digest =
      read_bytes(pending.descriptor, pending.address, {value.raw(), value.bytes()}, pending.location);
  verify(pending.stored, digest, pending.checksum, pending.location);
}

void ArrayReader::finish() {
  std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  std::size_t bytes = 0;
  for (const Pending& array : pending) bytes += array.stored.value.bytes();
  const std::size_t threads =
      std::min({bytes / kBytesPerThread, pending.size(), kMostThreads, allowed_processors().size()});
  std::vector<std::exception_ptr> errors(pending.size());
  for_each_in_threads(pending.size(), threads, [&](std::size_t i) {
    try {
      read(pending[i]);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

StoredArray read_array(const Hdf5Group& dataset) {
  ArrayReader reader;
  StoredArray stored = reader.begin(dataset);
  reader.finish();
  return stored;
}

}  // namespace syncline::io
