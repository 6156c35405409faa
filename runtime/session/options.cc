#include "runtime/session/options.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "ops/kernels/instruction_sets.h"
#include "runtime/session/algorithm_file.h"
#include "syncline/error.h"

namespace syncline {
namespace {

using Json = nlohmann::ordered_json;

template <auto Member>
void set_seconds(const Json& value, KerasJson& found) {
  constexpr double kMost = 1e9;  // nanoseconds must fit 64 bits
  if (value.is_number() && value.get<double>() > 0 && value.get<double>() <= kMost)
    found.comm.*Member = value.get<double>();
  else fail<ValueError>("give a positive number of seconds, at most 1e9");
}

template <auto Member>
void set_switch(const Json& value, KerasJson& found) {
  if (!value.is_boolean()) fail<ValueError>("give true or false");
  found.comm.*Member = value.get<bool>();
}

// `parse` throws for an unknown name, and for "".
template <auto Member, auto parse>
void set_name(const Json& value, KerasJson& found) {
  found.comm.*Member = parse(value.is_string() ? value.get<std::string>() : "");
}

void set_algorithms(const Json& value, KerasJson& found) {
  if (!value.is_string()) fail<ValueError>("give the path of a table of algorithms");
  found.comm.algorithms = read_algorithm_file(value.get<std::string>());
}

void set_optimizer_state(const Json& value, KerasJson& found) {
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  if (name == "auto") found.optimizer_state = OptimizerState::kAuto;
  else if (name == "split") found.optimizer_state = OptimizerState::kSplit;
  else if (name == "replicated") found.optimizer_state = OptimizerState::kReplicated;
  else fail<ValueError>("give auto, split or replicated");
}

void set_check_steps(const Json& value, KerasJson& found) {
  if (!value.is_number_unsigned()) fail<ValueError>("give a number of steps, or 0 for never");
  found.check_steps = value.get<std::uint64_t>();
}

void set_parts(const Json& value, KerasJson& found) {
  constexpr std::uint64_t kMost = KerasJson::kMostParts;
  const std::uint64_t parts = value.is_number_unsigned() ? value.get<std::uint64_t>() : kMost + 1;
  if (parts > kMost || (parts & (parts - 1)) != 0)
    fail<ValueError>("give a power of two up to ", kMost, ", or 0 for none");
  found.parts = static_cast<int>(parts);
}

void set_simd(const Json& value, KerasJson& found) {
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  kernels::instruction_sets_of(name);  // throws if it is unknown or missing
  found.simd = name;
}

// Accepts 4096 or "25MiB".
std::optional<double> bytes_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return {};
  const auto text = value.get<std::string>();
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  if (unit == text.c_str()) return {};
  while (*unit == ' ') ++unit;
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  for (const auto& [name, factor] : kUnits)
    if (std::string_view(unit) == name) return number * factor;
  return {};
}

template <auto Member>
void set_bytes(const Json& value, KerasJson& found) {
  constexpr double kMost = 0x1p40;
  const std::optional<double> bytes = bytes_of(value);
  if (!bytes || !(*bytes >= 1) || !(*bytes <= kMost) || *bytes != std::floor(*bytes))
    fail<ValueError>("give a number of bytes, such as 4096 or \"25MiB\" (B, KiB, MiB, GiB)");
  found.*Member = static_cast<std::int64_t>(*bytes);
}

struct Option {
  const char *key, *variable;
  void (*set)(const Json& value, KerasJson& found);  // throws advice
};

constexpr Option kOptions[] = {
    {"transport", "SYNCLINE_TRANSPORT", &set_name<&comm::Settings::transport, &comm::parse_transport>},
    {"wire_format", "SYNCLINE_WIRE_FORMAT", &set_name<&comm::Settings::wire_format, &comm::parse_wire_format>},
    {"algorithms", "SYNCLINE_ALGORITHMS", &set_algorithms},
    {"stall_limit", "SYNCLINE_STALL_LIMIT", &set_seconds<&comm::Settings::stall_limit>},
    {"wait_limit", "SYNCLINE_WAIT_LIMIT", &set_seconds<&comm::Settings::wait_limit>},
    {"background", "SYNCLINE_BACKGROUND", &set_switch<&comm::Settings::background>},
    {"verbose", "SYNCLINE_VERBOSE", &set_switch<&comm::Settings::verbose>},
    {"first_bucket", "SYNCLINE_FIRST_BUCKET", &set_bytes<&KerasJson::first_bucket>},
    {"bucket", "SYNCLINE_BUCKET", &set_bytes<&KerasJson::later_buckets>},
    {"by_rows_from", "SYNCLINE_BY_ROWS_FROM", &set_bytes<&KerasJson::by_rows_from>},
    {"share_from", "SYNCLINE_SHARE_FROM", &set_bytes<&KerasJson::share_from>},
    {"optimizer_state", "SYNCLINE_OPTIMIZER_STATE", &set_optimizer_state},
    {"check_steps", "SYNCLINE_CHECK_STEPS", &set_check_steps},
    {"parts", "SYNCLINE_PARTS", &set_parts},
    {"simd", "SYNCLINE_SIMD", &set_simd},
};

void set(const Option& option, const Json& value, const std::string& where, const std::string& shown,
         KerasJson& found) {
  try {
    option.set(value, found);
  } catch (const ValueError& advice) {
    fail<ValueError>(where, " is ", shown, "; ", advice.what());
  } catch (const IoError& error) {
    fail<IoError>(where, " is ", shown, "; ", error.what());
  }
}

}  // namespace

void read_options(const Json& options, const std::string& path, KerasJson& found) {
  const auto place = [&](const std::string& key) { return join_text(path, ": \"", key, '"'); };
  if (!options.is_object()) fail<ValueError>(place("syncline"), " is ", options.dump(), "; give an object");
  for (const auto& [key, value] : options.items()) {
    const Option* known = nullptr;
    std::string names;
    for (const Option& option : kOptions) {
      if (key == option.key) known = &option;
      names += (names.empty() ? "" : ", ") + std::string(option.key);
    }
    if (known == nullptr) fail<ValueError>(place("syncline." + key), " is not an option; the options are ", names);
    set(*known, value, place("syncline." + key), value.dump(), found);
  }
}

void read_option_variables(const Getenv& getenv, KerasJson& found) {
  for (const Option& option : kOptions) {
    const char* text = getenv(option.variable);
    if (text == nullptr || *text == '\0') continue;
    const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool plain = parsed.is_number() || parsed.is_boolean();
    set(option, plain ? parsed : Json(text), std::string("environment: ") + option.variable,
        join_text('\'', text, '\''), found);
  }
}

}  // namespace syncline
