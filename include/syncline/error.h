// Errors: one exception tree below syncline::Error, thrown with `fail<E>(parts...)`.
//
// A message says what was called, what is wrong (shapes, values), and what to do. In Python: ValueError and ShapeError
// are ValueError, DTypeError is TypeError, IoError is OSError, the others are RuntimeError.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)
namespace syncline {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct ValueError : Error {  // an argument's value is not allowed
  using Error::Error;
};
struct ShapeError : ValueError {  // shapes do not fit together
  using ValueError::ValueError;
};
struct DTypeError : Error {  // an operation does not take this dtype
  using Error::Error;
};
struct CommError : Error {  // the wire failed
  using Error::Error;
};
struct DisagreementError : CommError {  // ranks submit different operations, or hold different values
  using CommError::CommError;
};
struct StallError : CommError {  // other ranks did not arrive within the limit
  using CommError::CommError;
};
struct IoError : Error {  // a file is missing, damaged, or cannot be written
  using Error::Error;
};
struct InternalError : Error {  // a bug in Syncline
  using Error::Error;
};

// Concatenates everything that can be streamed.
template <class... Parts>
std::string join_text(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Throws E with the concatenated parts as its message.
template <class E = ValueError, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw E(join_text(parts...));
}

// For internal invariants only; report bad input with fail<ValueError> or a related type.
#define SYNCLINE_CHECK(condition)                                                                                 \
  do {                                                                                                            \
    if (!(condition))                                                                                             \
      ::syncline::fail<::syncline::InternalError>(__FILE__, ":", __LINE__,                                        \
                                                  ": internal check failed: " #condition "; please report this"); \
  } while (false)

}  // namespace syncline
#pragma GCC visibility pop
