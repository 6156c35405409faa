#include "io/checkpoint/json.h"

#include <cmath>
#include <limits>
#include <utility>

#include "io/checkpoint/fields.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct WriteField {
  Json& json;

  void operator()(const char* name, const auto& value) const { json[name] = value; }
  void operator()(const char* name, const auto& value, bool) const { json[name] = value; }
  void operator()(const char* name, const std::optional<double>& value, bool) const {
    if (!value || std::isfinite(*value)) json[name] = value ? Json(*value) : Json();
    else json[name] = std::isnan(*value) ? "nan" : *value > 0 ? "inf" : "-inf";
  }
};

struct ReadField {
  const Json& json;

  template <class Value>
  void operator()(const char* name, Value& value) const {
    const Json& number = json.at(name);
    if (!number.is_number_unsigned() || !std::in_range<Value>(number.get<std::uint64_t>()))
      fail<IoError>("the outline's ", name, " is not a natural number, or is too large");
    value = number.get<Value>();
  }
  template <class Value>
  void operator()(const char* name, Value& value, bool required) const {
    if (required || json.contains(name)) read(json.at(name), value);
  }

  template <class Value>
  static void read(const Json& json, Value& value) {
    value = json.get<Value>();
  }
  static void read(const Json& json, std::optional<double>& value) {
    if (json == "inf") value = kInfinity;
    else if (json == "-inf") value = -kInfinity;
    else if (json == "nan") value = kNaN;
    else if (!json.is_null()) value = json.get<double>();
  }
};

}  // namespace

Json json_of(const CheckpointHead& head) {
  Json json;
  for_each_head_field(head, WriteField{json});
  json["state"] = nullptr;
  if (head.has_state) for_each_state_field(head.state, WriteField{json["state"]});
  return json;
}

CheckpointHead head_of(const Json& json) {
  CheckpointHead head;
  for_each_head_field(head, ReadField{json});
  head.has_state = !json.at("state").is_null();
  if (head.has_state) for_each_state_field(head.state, ReadField{json.at("state")});
  return head;
}

}  // namespace syncline::io
