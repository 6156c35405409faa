// Refusing a file: fail<IoError> for messages with text of the file in them, which stay one line that steers no
// terminal.
#pragma once

#include "base/printable.h"
#include "syncline/error.h"

namespace syncline::io {

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail<IoError>(printable(join_text(parts...)));
}

}  // namespace syncline::io
