// Exit codes of a job, beside 0 (done) and 1 (any other error). docs/exit_codes.md lists them for users.
#pragma once

#include <exception>

#include "syncline/error.h"

#pragma GCC visibility push(default)
namespace syncline {

inline constexpr int kExitDisagreement = 65;  // ranks submitted different operations, or held different values
inline constexpr int kExitStall = 66;         // a rank did not arrive within the limit
inline constexpr int kExitSaved = 75;         // stopped on request after saving a checkpoint; start the job again

// The exit code of a program that ends because of `error`.
inline int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const DisagreementError*>(&error) != nullptr) return kExitDisagreement;
  if (dynamic_cast<const StallError*>(&error) != nullptr) return kExitStall;
  return 1;
}

}  // namespace syncline
#pragma GCC visibility pop
