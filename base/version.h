// The version of Syncline, as in CMakeLists.txt: "0.2.0".
#pragma once

namespace syncline {

const char* version();

}  // namespace syncline
