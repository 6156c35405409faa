// The states of callbacks (Callback::state), which are JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace syncline::training {

// A number as text keeps its bits, and may be infinite.
std::string text_of(double number);
double number_in(const nlohmann::json& text);
// Calls `read` with the parsed state of the callback `name`. Throws ValueError if that is not what it looks for.
void read_state(const std::string& name, const std::string& state,
                const std::function<void(const nlohmann::json&)>& read);

}  // namespace syncline::training
