// refuse: fail<IoError> for messages that quote text of a file. Control characters become question marks, so the
// message stays one line and sends no escape sequences to a terminal.
#pragma once

#include "base/printable.h"
#include "syncline/error.h"

namespace syncline::io {

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail<IoError>(printable(join_text(parts...)));
}

}  // namespace syncline::io
