// The C++ declarations of the backend's functions, read from the public headers.
#pragma once

#include <string>
#include <vector>

namespace syncline::testing {

struct Signature {
  std::string headers;
  std::vector<std::string> declarations;  // one per overload, each on one line
};

// The C++ name of a function of the backend, which differs if the name is a keyword (switch_) or a class (Function).
std::string spelling_of(const std::string& function);
// From include/syncline/backend below `root`. Without declarations there is no such function.
Signature signature_of(const std::string& root, const std::string& function);

}  // namespace syncline::testing
