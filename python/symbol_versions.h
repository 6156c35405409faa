// Included before every source of a wheel (scripts/wheel). Binds std::condition_variable::wait to its version of
// g++ 4.4, which every libstdc++ has, rather than to that of g++ 12. So the wheel runs where libstdc++ is that of
// g++ 11.
#pragma once

__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
