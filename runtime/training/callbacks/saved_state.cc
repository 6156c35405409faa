#include "runtime/training/callbacks/saved_state.h"

#include <fmt/format.h>

#include <charconv>

#include "syncline/error.h"

namespace syncline::training {

std::string text_of(double number) { return fmt::format("{}", number); }

double number_in(const nlohmann::json& text) {
  const auto& digits = text.get_ref<const std::string&>();
  double number = 0;
  const char* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, number).ptr != end) fail<ValueError>("'", digits, "' is not a number");
  return number;
}

void read_state(const std::string& name, const std::string& state,
                const std::function<void(const nlohmann::json&)>& read) {
  try {
    read(nlohmann::json::parse(state));
  } catch (const nlohmann::json::exception& error) {
    fail<ValueError>("'", state, "' is not a saved state of ", name, ": ", error.what());
  }
}

}  // namespace syncline::training
