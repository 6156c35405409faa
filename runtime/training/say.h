// say: prints one line to standard error.
#pragma once

#include <cstdio>
#include <string>

namespace syncline::training {

// Uses fputs because fmt::print throws if standard error cannot be written.
inline void say(const std::string& what) { std::fputs(("syncline: " + what + "\n").c_str(), stderr); }

}  // namespace syncline::training
