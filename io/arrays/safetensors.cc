#include "io/arrays/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "io/arrays/npy.h"
#include "io/files/random_access_file.h"
#include "io/files/refuse.h"

namespace syncline::io {
namespace {

using Json = nlohmann::ordered_json;

// The format's own limit.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kPrefix = 8;
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kOutline = "syncline";

// By dtype.
constexpr std::array<const char*, 9> kTypes{"BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "F32", "F64"};

template <class... Parts>
[[noreturn]] void fail_at(const std::string& path, const Parts&... parts) {
  refuse("safetensors file '", path, "': ", parts...);
}

struct Placed {
  ArrayEntry entry;
  std::uint64_t begin = 0, end = 0;
};

DType parse_type(const std::string& path, const std::string& name, const std::string& type) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (type == kTypes[i]) return static_cast<DType>(i);
  fail_at(path, "array '", name, "' is of type ", type,
          ", which is not supported; cast it to F32 and write the file again");
}

// Throws nlohmann's exceptions if a field has another type.
Placed placed_of(const std::string& path, const std::string& name, const nlohmann::json& fields) {
  Placed placed{{name, parse_type(path, name, fields.at("dtype").get_ref<const std::string&>()), {}}};
  std::uint64_t bytes = size_of(placed.entry.dtype);
  for (const nlohmann::json& dim : fields.at("shape")) {
    if (!dim.is_number_unsigned()) fail_at(path, "array '", name, "' has a dimension that is not a natural number");
    const auto extent = dim.get<std::uint64_t>();
    if (extent > std::numeric_limits<std::int64_t>::max() || __builtin_mul_overflow(bytes, extent, &bytes))
      fail_at(path, "array '", name, "' has an impossible shape");
    placed.entry.shape.push_back(static_cast<std::int64_t>(extent));
  }
  if (!is_possible(placed.entry.shape)) fail_at(path, "array '", name, "' has an impossible shape");
  const nlohmann::json& offsets = fields.at("data_offsets");
  if (offsets.size() != 2 || !offsets.at(0).is_number_unsigned() || !offsets.at(1).is_number_unsigned())
    fail_at(path, "array '", name, "' does not have two data_offsets");
  placed.begin = offsets.at(0).get<std::uint64_t>();
  placed.end = offsets.at(1).get<std::uint64_t>();
  if (placed.end < placed.begin || placed.end - placed.begin != bytes)
    fail_at(path, "array '", name, "' needs ", bytes, " bytes, but its offsets are ", placed.begin, " to ", placed.end);
  return placed;
}

// Checks a header before it is parsed: the parser keeps the last of two equal names, which would hide an array. The
// parser's own callback is too slow: it visits all arrays again after each one.
class HeaderCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderCheck(const std::string& path) : path_(path) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ == 1 && !names_.insert(name).second) fail_at(path_, "the header has '", name, "' twice");
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool enter() {
    if (++depth_ > 8) fail_at(path_, "the header is nested too deeply");
    return true;
  }

  const std::string& path_;
  std::set<std::string> names_;
  int depth_ = 0;
};

nlohmann::json parse_header(const std::string& path, const std::string& text) {
  HeaderCheck check(path);
  nlohmann::json::sax_parse(text, &check);  // parse() reports invalid JSON
  return nlohmann::json::parse(text);
}

struct Header {
  std::vector<Placed> arrays;  // in data order
  std::string outline;
};

Header header_of(const std::string& path, const std::string& text, std::uint64_t data_bytes) {
  Header header;
  try {
    const nlohmann::json fields = parse_header(path, text);
    for (const auto& [name, value] : fields.get_ref<const nlohmann::json::object_t&>()) {
      if (name != kMetadata) header.arrays.push_back(placed_of(path, name, value));
      else if (value.contains(kOutline)) header.outline = value.at(kOutline).get<std::string>();
    }
  } catch (const nlohmann::json::exception& error) {
    fail_at(path, "the header is damaged: ", error.what());
  }
  // Compare ends too, and sort stably: an empty array begins where another array begins.
  std::stable_sort(header.arrays.begin(), header.arrays.end(), [](const Placed& a, const Placed& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t next = 0;
  for (const Placed& placed : header.arrays) {
    if (placed.begin != next)
      fail_at(path, "array '", placed.entry.name, "' begins at ", placed.begin, ", not at ", next);
    next = placed.end;
  }
  if (next != data_bytes) fail_at(path, "the arrays have ", next, " bytes, but the file has ", data_bytes);
  return header;
}

std::vector<ArrayEntry> entries_in(const Header& header) {
  std::vector<ArrayEntry> entries;
  for (const Placed& placed : header.arrays) entries.push_back(placed.entry);
  return entries;
}

class Safetensors : public ArrayFile {
 public:
  Safetensors(std::unique_ptr<RandomAccessFile> file, std::uint64_t data, Header header)
      : ArrayFile(entries_in(header), header.outline),
        file_(std::move(file)),
        data_(data),
        header_(std::move(header)) {}

  Array read(std::size_t index) override {
    const Placed& placed = header_.arrays.at(index);
    Array value = Array::uninitialized(placed.entry.dtype, placed.entry.shape);
    file_->read(data_ + placed.begin, {value.raw(), value.bytes()});
    check_bools(file_->path(), placed.entry.name, value);
    return value;
  }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::uint64_t data_;
  Header header_;
};

std::unique_ptr<ArrayFile> open_bytes(std::unique_ptr<RandomAccessFile> file) {
  std::uint64_t length = 0;
  if (file->size() < kPrefix) fail_at(file->path(), "is too short for a header");
  file->read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLongestHeader || length > file->size() - kPrefix)
    fail_at(file->path(), "the header claims ", length, " bytes; the file is damaged or of another format");
  std::string text(length, '\0');
  file->read(kPrefix, std::as_writable_bytes(std::span(text)));
  const std::uint64_t data = kPrefix + length;
  Header header = header_of(file->path(), text, file->size() - data);
  return std::make_unique<Safetensors>(std::move(file), data, std::move(header));
}

std::string header_text(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline) {
  Json header = Json::object();
  if (!outline.empty()) header[kMetadata] = {{kOutline, outline}};
  std::uint64_t next = 0;
  std::set<std::string_view> seen{kMetadata};
  for (const auto& [name, value] : arrays) {
    if (!seen.insert(name).second)
      fail_at(path, "two arrays have the name '", name, "', or one has the name of the format's metadata");
    header.get_ref<Json::object_t&>().push_back({name,
                                                 {{"dtype", kTypes.at(static_cast<std::size_t>(value.dtype()))},
                                                  {"shape", value.shape().dims()},
                                                  {"data_offsets", {next, next + value.bytes()}}}});
    next += value.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail_at(path, "a name is not UTF-8, which the format requires");
  }
  text.append((kPrefix - text.size() % kPrefix) % kPrefix, ' ');  // aligns the values
  if (text.size() > kLongestHeader)
    fail_at(path, "the header has ", text.size(), " bytes, more than the format allows");
  return text;
}

}  // namespace

std::unique_ptr<ArrayFile> open_safetensors(const std::string& path) {
  return open_bytes(open_random_access_file(path));
}

std::unique_ptr<ArrayFile> parse_safetensors(const std::string& path, Array bytes) {
  return open_bytes(random_access_file_of(path, std::move(bytes)));
}

Array serialize_safetensors(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline) {
  const std::string header = header_text(path, arrays, outline);
  std::size_t total = kPrefix + header.size();
  for (const NamedArray& array : arrays) total += array.value.bytes();
  Array image = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(total)});
  const std::uint64_t length = header.size();
  std::byte* next = image.raw();
  const auto append = [&next](const void* bytes, std::size_t size) {
    if (size > 0) std::memcpy(next, bytes, size);
    next += size;
  };
  append(&length, kPrefix);
  append(header.data(), header.size());
  for (const NamedArray& array : arrays) append(array.value.raw(), array.value.bytes());
  return image;
}

}  // namespace syncline::io
