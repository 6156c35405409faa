// The version of Syncline, as in CMakeLists.txt: "0.3.0".
#pragma once

namespace syncline {

const char* version();

}  // namespace syncline
