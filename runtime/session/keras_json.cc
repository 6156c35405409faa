#include "syncline/distributed/keras_json.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/placement/faults.h"
#include "runtime/session/json_file.h"
#include "runtime/session/options.h"
#include "syncline/error.h"
#include "syncline/threads.h"

namespace syncline {
namespace {

using Json = nlohmann::ordered_json;

// File and key, for error messages.
std::string place(const std::string& path, std::string_view key) { return join_text(path, ": \"", key, '"'); }

template <class T>
T value_of(const Json& value, const std::string& where, const char* wanted) {
  const bool fits = std::is_same_v<T, double> ? value.is_number() : value.is_string();
  if (!fits) fail<ValueError>(where, " is ", value.dump(), "; give ", wanted);
  return value.get<T>();
}

KerasJson values_of(const Json& json, const std::string& path) {
  if (!json.is_object()) fail<ValueError>(path, ": holds ", json.dump(), "; give an object of options");
  KerasJson found;
  for (const auto& [key, value] : json.items()) {
    const std::string where = place(path, key);
    if (key == "floatx") found.config.floatx = checked_floatx(where, value_of<std::string>(value, where, "a name"));
    else if (key == "epsilon")
      found.config.epsilon = checked_epsilon(where, value_of<double>(value, where, "a number"));
    else if (key == "image_data_format")
      found.config.image_data_format = checked_data_format(where, value_of<std::string>(value, where, "a name"));
    else if (key == "backend") found.backend = value_of<std::string>(value, where, "a name");
    else if (key == "syncline") read_options(value, path, found);
  }
  return found;
}

// Creates the file atomically and never replaces one: of several ranks or programs that find no file, one succeeds.
// Ignores errors such as a read-only directory.
void write_defaults(const std::filesystem::path& path) {
  const KerasJson defaults;
  const Json json{{"floatx", std::string(name_of(defaults.config.floatx))},
                  {"epsilon", defaults.config.epsilon},
                  {"backend", defaults.backend},
                  {"image_data_format", defaults.config.image_data_format}};
  const std::string text = json.dump(4) + '\n';
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  static std::atomic<int> number = 0;
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  const std::string temporary = join_text(path.string(), '.', host, '.', getpid(), '.', ++number, ".tmp");
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) == 0 && written) [[maybe_unused]]
    const int lost = link(temporary.c_str(), path.c_str());
  unlink(temporary.c_str());
}

// Empty if neither KERAS_HOME nor HOME is set.
std::filesystem::path path_of(const Getenv& getenv) {
  const auto set = [&](const char* name) {
    const char* value = getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto home = set("KERAS_HOME"); !home.empty()) return home / "keras.json";
  const auto home = set("HOME");
  return home.empty() ? home : home / ".keras" / "keras.json";
}

void override_from(const Getenv& getenv, KerasJson& found) {
  Config& config = found.config;
  read_option_variables(getenv, found);
  const auto with = [&](const char* name, auto set) {
    if (const char* value = getenv(name); value != nullptr && *value != '\0')
      set(std::string("environment: ") + name, value);
  };
  with("SYNCLINE_FLOATX",
       [&](const std::string& what, const char* value) { config.floatx = checked_floatx(what, value); });
  with("SYNCLINE_IMAGE_DATA_FORMAT", [&](const std::string& what, const char* value) {
    config.image_data_format = checked_data_format(what, value);
  });
  with("SYNCLINE_EPSILON", [&](const std::string& what, const char* value) {
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    if (*end != '\0') fail<ValueError>(what, " is '", value, "'; give a number");
    config.epsilon = checked_epsilon(what, number);
  });
  with("SYNCLINE_FAULT", [&](const std::string& what, const char* value) {
    const char* allowed = getenv("SYNCLINE_ALLOW_FAULTS");
    if (allowed == nullptr || std::string_view(allowed) != "1")
      fail<ValueError>(what, " is '", value,
                       "', which damages the run on purpose; unset it, or set SYNCLINE_ALLOW_FAULTS=1 for a test");
    parse_faults(value);  // throws if malformed
    found.faults = value;
  });
}

// Sums over ranks that depend on the number of ranks.
void check_parts(const KerasJson& found) {
  if (found.parts == 0) return;
  const bool nccl = found.comm.transport == comm::Transport::kNccl;
  const bool rounds = found.comm.wire_format.value_or(comm::WireFormat::kSame) != comm::WireFormat::kSame;
  if (nccl || rounds)
    fail<ValueError>("SYNCLINE_PARTS is ", found.parts, ", but with ",
                     nccl ? "the transport nccl" : "a 16-bit wire format",
                     " sums depend on the number of ranks; set SYNCLINE_PARTS=0, or ",
                     nccl ? "another transport" : "the wire format float32");
}

}  // namespace

DType checked_floatx(std::string_view what, std::string_view name) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64})
    if (name_of(dtype) == name) return dtype;
  fail<ValueError>(what, ": unknown floatx '", name, "'; give float16, float32 or float64");
}

double checked_epsilon(std::string_view what, double epsilon) {
  if (!std::isfinite(epsilon) || epsilon < 0)
    fail<ValueError>(what, ": epsilon ", epsilon, "; give a finite number that is not negative");
  return epsilon;
}

std::string checked_data_format(std::string_view what, std::string_view data_format) {
  if (data_format != "channels_last" && data_format != "channels_first")
    fail<ValueError>(what, ": unknown data_format '", data_format, "'; give channels_last or channels_first");
  return std::string(data_format);
}

KerasJson load_keras_json(const Getenv& getenv) {
  KerasJson found;
  if (const auto path = path_of(getenv); !path.empty()) {
    std::error_code unknown;  // an unreadable directory counts as empty
    if (std::filesystem::exists(path, unknown))
      found = values_of(read_json_file(path.string(), "make it readable, or remove it"), path.string());
    else write_defaults(path);
  }
  override_from(getenv, found);
  check_parts(found);
  return found;
}

const KerasJson& keras_json() {
  static const KerasJson loaded = load_keras_json([](const char* name) { return std::getenv(name); });
  return loaded;
}

comm::CommOptions comm_options() { return comm::options_for_threads(thread_count(), keras_json().comm); }

}  // namespace syncline
