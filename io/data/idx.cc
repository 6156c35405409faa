#include "io/data/idx.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "io/files/byte_order.h"
#include "io/files/descriptor.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

// No deflate ratio exceeds this; a header that promises more is damaged.
constexpr std::uint64_t kLargestCompression = 1100;

// Reads a file through zlib, which also passes plain files through.
class GzipReader {
 public:
  explicit GzipReader(const std::string& path) : path_(path) {
    const RegularFile file = open_regular(path);
    if (file.descriptor < 0) fail_here("cannot open: ", file.refused);
    size_ = file.size;
    file_ = gzdopen(file.descriptor, "rb");
    if (file_ == nullptr) {
      ::close(file.descriptor);
      fail_here("cannot open: zlib is out of memory");
    }
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader() { gzclose_r(file_); }

  std::uint64_t size() const { return size_; }
  // Valid after the first read.
  bool is_plain() const { return gzdirect(file_) != 0; }

  template <class... Parts>
  [[noreturn]] void fail_here(const Parts&... parts) const {
    fail<IoError>("data file '", path_, "': ", parts...);
  }

  // Fills `target`; `part` names it in the error.
  void read(std::span<std::byte> target, std::string_view part) {
    const std::size_t wanted = target.size();
    while (!target.empty()) {
      const std::size_t got = read_some(target);
      if (got == 0)
        fail_here("is truncated: ", part, " needs ", wanted, " bytes, but ", wanted - target.size(),
                  " are there; download the file again");
      target = target.subspan(got);
    }
  }

  // Throws if bytes are left. Reading to the end makes zlib check the stream's checksum.
  void require_end() {
    std::byte extra{};
    if (read_some({&extra, 1}) != 0)
      fail_here("has more bytes than its header claims; it is damaged or not an IDX file");
  }

 private:
  std::size_t read_some(std::span<std::byte> target) {
    constexpr std::size_t kPiece = std::size_t{1} << 30;  // gzread returns an int
    const int got = gzread(file_, target.data(), static_cast<unsigned>(std::min(target.size(), kPiece)));
    int code = Z_OK;
    // zlib puts the descriptor's number before the message.
    std::string_view message = gzerror(file_, &code);
    if (const std::size_t colon = message.find(": "); colon != message.npos) message.remove_prefix(colon + 2);
    if (code == Z_BUF_ERROR) fail_here("is truncated: the gzip stream ends too early; download the file again");
    if (got < 0 || code < 0)
      fail_here("cannot read: ", code == Z_ERRNO ? std::string_view(std::strerror(errno)) : message,
                "; download the file again");
    return static_cast<std::size_t>(got);
  }

  std::string path_;
  std::uint64_t size_ = 0;
  gzFile file_ = nullptr;
};

std::optional<DType> dtype_of_code(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08: return DType::kUint8;
    case 0x09: return DType::kInt8;
    case 0x0b: return DType::kInt16;
    case 0x0c: return DType::kInt32;
    case 0x0d: return DType::kFloat32;
    case 0x0e: return DType::kFloat64;
    default: return std::nullopt;
  }
}

IdxHeader read_header(GzipReader& file) {
  std::array<std::byte, 4> magic{};
  file.read(magic, "the magic number");
  const auto number = [&](std::size_t i) { return std::to_integer<unsigned>(magic[i]); };
  const std::optional<DType> dtype = dtype_of_code(magic[2]);
  if (number(0) != 0 || number(1) != 0 || !dtype || number(3) == 0)
    file.fail_here("has the wrong magic number (bytes ", number(0), " ", number(1), " ", number(2), " ", number(3),
                   "); an IDX file begins with 0 0, a type of 8 to 14 and the number of dimensions");
  IdxHeader header;
  header.dtype = *dtype;
  std::uint64_t bytes = size_of(*dtype);
  bool possible = true;
  for (unsigned i = 0; i < number(3); ++i) {
    std::array<std::byte, 4> field{};
    file.read(field, "the header");
    std::uint64_t dim = 0;
    for (const std::byte byte : field) dim = dim << 8 | std::to_integer<std::uint64_t>(byte);
    header.shape.push_back(static_cast<std::int64_t>(dim));
    possible = possible && !__builtin_mul_overflow(bytes, dim, &bytes);
  }
  if (!possible || !is_possible(header.shape) || bytes / kLargestCompression > file.size())
    file.fail_here("claims the shape ", header.shape, " of ", header.dtype, ", more than its ", file.size(),
                   " bytes can hold; it is damaged or not an IDX file");
  header.bytes = magic.size() * (1 + static_cast<std::size_t>(header.shape.ndim()));
  header.compressed = !file.is_plain();
  return header;
}

}  // namespace

IdxHeader read_idx_header(const std::string& path) {
  GzipReader file(path);
  return read_header(file);
}

Array read_idx(const std::string& path) {
  GzipReader file(path);
  const IdxHeader header = read_header(file);
  Array array(header.dtype, header.shape);
  file.read({array.raw(), array.bytes()}, "the data");
  file.require_end();
  if (std::endian::native == std::endian::little) swap_bytes({array.raw(), array.bytes()}, size_of(array.dtype()));
  return array;
}

}  // namespace syncline::io
