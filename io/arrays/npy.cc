#include "io/arrays/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "io/files/byte_order.h"
#include "io/files/refuse.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kAlignment = 64;

// By dtype, without the byte order.
constexpr std::array<std::string_view, 9> kTypes{"b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"};

// Reads the literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing else.
class HeaderParser {
 public:
  HeaderParser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    int found = 0;
    expect("{");
    while (!take("}")) {
      const std::string_view key = quoted();
      expect(":");
      if (key == "descr") parse_type(header);
      else if (key == "fortran_order") header.fortran = parse_bool();
      else if (key == "shape") header.shape = parse_shape();
      else fail_here("has an unknown key");
      ++found;
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    skip();
    if (found != 3 || !text_.empty()) fail_here("is incomplete, or has surplus content");
    return header;
  }

  template <class... Parts>
  [[noreturn]] void fail_here(const Parts&... parts) const {
    refuse(name_, ": the npy header ", parts...);
  }

 private:
  void skip() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail_here("is damaged: '", token, "' is missing");
  }
  std::string_view quoted() {
    expect("'");
    const std::size_t end = text_.find('\'');
    if (end == text_.npos) fail_here("is damaged: a string does not end");
    const std::string_view inside = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return inside;
  }

  void parse_type(NpyHeader& header) {
    if (take("[")) fail_here("describes records, which are not supported");
    const std::string_view type = quoted();
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      if (type.empty() || type.substr(1) != kTypes[i] || std::string_view("<>|=").find(type[0]) == type.npos) continue;
      header.dtype = static_cast<DType>(i);
      header.swapped = type[0] == '>' && size_of(header.dtype) > 1;
      return;
    }
    fail_here("has type '", type,
              "', which is not supported; supported are bool, uint8, int8 to int64, float16 to float64");
  }

  bool parse_bool() {
    if (take("True")) return true;
    expect("False");
    return false;
  }

  Shape parse_shape() {
    Shape shape;
    expect("(");
    while (!take(")")) {
      skip();
      std::int64_t dim = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0 || shape.ndim() == 64) fail_here("has an impossible shape");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(dim);
      if (!take(",")) {
        expect(")");
        break;
      }
    }
    return shape;
  }

  const std::string& name_;
  std::string_view text_;
};

std::size_t checked_bytes(const std::string& name, const NpyHeader& header) {
  if (!is_possible(header.shape)) refuse(name, ": has the impossible shape ", header.shape);
  return static_cast<std::size_t>(header.shape.size()) * size_of(header.dtype);
}

// Converts Fortran order to C order. `reversed` holds the values with the first axis varying fastest.
Array transposed(const Array& reversed, const Shape& shape) {
  Array result = Array::uninitialized(reversed.dtype(), shape);
  const std::size_t width = size_of(reversed.dtype());
  std::vector<std::int64_t> index(shape.dims().size(), 0);
  for (std::int64_t to = 0; to < result.size(); ++to) {
    std::int64_t from = 0;
    for (int axis = shape.ndim() - 1; axis >= 0; --axis)
      from = from * shape[axis] + index[static_cast<std::size_t>(axis)];
    std::memcpy(result.raw() + static_cast<std::size_t>(to) * width,
                reversed.raw() + static_cast<std::size_t>(from) * width, width);
    for (int axis = shape.ndim() - 1; axis >= 0 && ++index[static_cast<std::size_t>(axis)] == shape[axis]; --axis)
      index[static_cast<std::size_t>(axis)] = 0;
  }
  return result;
}

}  // namespace

NpyHeader parse_npy_header(const std::string& name, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto byte_at = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(text[i])}; };
  if (text.size() < 12 || !text.starts_with(kMagic)) refuse(name, ": is not an npy array");
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3) refuse(name, ": npy version ", version, " is not supported; versions 1 to 3 are");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = byte_at(8) | byte_at(9) << 8;
  if (version > 1) length |= byte_at(10) << 16 | byte_at(11) << 24;
  if (length > text.size() - begin || begin + length > kLongestNpyHeader)
    refuse(name, ": the npy header claims ", length, " bytes, more than there are or than is allowed");
  NpyHeader header = HeaderParser(name, text.substr(begin, length)).parse();
  header.bytes = begin + length;
  checked_bytes(name, header);
  return header;
}

Array parse_npy(const std::string& name, std::span<const std::byte> bytes) {
  const NpyHeader header = parse_npy_header(name, bytes);
  const std::size_t wanted = checked_bytes(name, header), there = bytes.size() - header.bytes;
  if (there != wanted)
    refuse(name, ": shape ", header.shape, " of ", header.dtype, " needs ", wanted, " bytes, but ", there,
           " are there");
  Array value = Array::uninitialized(header.dtype, header.shape);
  if (wanted > 0) std::memcpy(value.raw(), bytes.data() + header.bytes, wanted);
  if (header.swapped) swap_bytes({value.raw(), value.bytes()}, size_of(value.dtype()));
  return header.fortran && header.shape.ndim() > 1 ? transposed(value, header.shape) : value;
}

std::string npy_header(DType dtype, const Shape& shape) {
  std::string text =
      join_text("{'descr': '", size_of(dtype) == 1 ? '|' : '<', kTypes.at(static_cast<std::size_t>(dtype)),
                "', 'fortran_order': False, 'shape': ", shape, ", }");
  const std::size_t before = kMagic.size() + 4;
  const std::size_t total = (before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.append(total - before - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

void check_bools(const std::string& path, const std::string& name, const Array& value) {
  if (value.dtype() != DType::kBool) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.raw());
  if (std::any_of(bytes, bytes + value.bytes(), [](unsigned char byte) { return byte > 1; }))
    refuse("file '", path, "': array '", name, "' holds a bool that is neither true nor false");
}

}  // namespace syncline::io
