// For tests of what is refused, and what is said then.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace syncline::testing {

// f() throws E with a message that holds `part`.
template <class E, class F>
void expect_refused(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "not refused; expected a message with: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace syncline::testing
