#include "runtime/training/callbacks/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "syncline/error.h"

namespace syncline::io {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view kPrefix = "events.out.tfevents.";

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 != 0 ? 0x82f63b78 : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

// TFRecord masks its CRCs, because a CRC of bytes that contain CRCs is weak.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8; }

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A protobuf message: each field is a key (field number and wire type), then the value.
class Message {
 public:
  void add(int field, double value) { key(field, 1).bytes_.append(bytes_of(value)); }
  void add(int field, float value) { key(field, 5).bytes_.append(bytes_of(value)); }
  void add(int field, std::int64_t value) { key(field, 0).varint(static_cast<std::uint64_t>(value)); }
  void add(int field, std::string_view value) {
    key(field, 2).varint(value.size());
    bytes_.append(value);
  }
  void add(int field, const Message& value) { add(field, std::string_view(value.bytes_)); }
  std::string_view bytes() const { return bytes_; }

 private:
  Message& key(int field, int encoding) {
    varint(static_cast<std::uint64_t>(field << 3 | encoding));
    return *this;
  }
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Fields of tensorflow.Event.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;

Message event() {
  Message event;
  event.add(kWallTime, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

std::int64_t seconds_in(std::string_view name) {
  std::int64_t seconds = 0;
  if (name.starts_with(kPrefix)) std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
  return seconds;
}

// Readers sort by name, so the seconds exceed those of all earlier files, whatever the clock says.
std::string new_path(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::filesystem::directory_iterator entries(folder, error);
  if (error) fail<IoError>("cannot write event files into '", folder, "': ", error.message());
  std::int64_t seconds = std::time(nullptr);
  for (const auto& entry : entries) seconds = std::max(seconds, seconds_in(entry.path().filename().string()) + 1);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{}/{}{:010}.{}.{}", folder, kPrefix, seconds, host.data(), ::getpid());
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 255];
  return ~crc;
}

EventFile::EventFile(const std::string& folder, std::int64_t first_step) : file_(new_path(folder)) {
  Message version = event();
  version.add(kFileVersion, std::string_view("brain.Event:2"));
  add_record(version.bytes());
  Message log;
  log.add(1, std::int64_t{1});  // status: START
  Message start = event();
  start.add(kStep, first_step);
  start.add(kSessionLog, log);
  add_record(start.bytes());
  flush();
}

void EventFile::add_scalar(std::string_view name, std::int64_t step, double value) {
  Message scalar, summary, whole = event();
  scalar.add(1, name);
  scalar.add(2, static_cast<float>(value));
  summary.add(1, scalar);
  whole.add(kStep, step);
  whole.add(kSummary, summary);
  add_record(whole.bytes());
}

// A frame: length, CRC of the length, event, CRC of the event.
void EventFile::add_record(std::string_view event) {
  const std::uint64_t length = event.size();
  records_.append(bytes_of(length)).append(bytes_of(masked_crc(bytes_of(length))));
  records_.append(event).append(bytes_of(masked_crc(event)));
}

void EventFile::flush() {
  const std::string records = std::exchange(records_, {});
  file_.append(records);
}

}  // namespace syncline::io
