// The C++ declarations of the backend's functions, read from the public headers.
#pragma once

#include <string>
#include <vector>

namespace syncline::testing {

struct Signature {
  std::string headers;
  std::vector<std::string> declarations;  // one an overload, on one line each
};

// How a function of the backend is spelled in C++: where its own name is a keyword, or it is a class.
std::string spelling_of(const std::string& function);
// From ops/*.h and runtime/*.h below `root`. No declarations: there is no such function.
Signature signature_of(const std::string& root, const std::string& function);

}  // namespace syncline::testing
