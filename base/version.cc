#include "base/version.h"

namespace syncline {

const char* version() { return SYNCLINE_VERSION; }

}  // namespace syncline
