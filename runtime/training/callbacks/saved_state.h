// Helpers for callbacks whose Callback::state() is JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace syncline::training {

// A number as text, which round-trips all bits and may be infinite.
std::string text_of(double number);
double number_in(const nlohmann::json& text);
// Calls `read` with the parsed state of callback `name`. Throws ValueError if `state` is not JSON or `read`
// rejects it.
void read_state(const std::string& name, const std::string& state,
                const std::function<void(const nlohmann::json&)>& read);

}  // namespace syncline::training
