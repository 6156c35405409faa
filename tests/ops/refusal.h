// A helper for tests of errors and their messages.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace syncline::testing {

// Expects that f() throws E with a message that contains `part`.
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
