// Compile-time check that our declaration of a C function matches the library's.
//
// Types must be equal, with two exceptions: we declare enumerations as int, and we use our own records in place of the
// library's. List a pair of records in kSameRecord once its layout has been compared.
#pragma once

#include <type_traits>

namespace syncline::comm {

template <class Ours, class Theirs>
constexpr bool kSameRecord = false;

template <class Ours, class Theirs>
constexpr bool kSameArgument = [] {
  if constexpr (std::is_same_v<Ours, Theirs> || kSameRecord<Ours, Theirs>) return true;
  else if constexpr (std::is_enum_v<Theirs>) return std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int);
  else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>)
    return kSameArgument<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>;
  else return false;
}();

template <class Ours, class Theirs>
constexpr bool kSameInterface = false;
template <class R, class... Ours, class S, class... Theirs>
constexpr bool kSameInterface<R (*)(Ours...), S (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) return false;
  else return kSameArgument<R, S> && (kSameArgument<Ours, Theirs> && ...);
}();

}  // namespace syncline::comm
