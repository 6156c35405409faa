// The attributes of an op are a plain struct whose fields are listed once, by name. Hashing (for common
// subexpressions), comparing and printing (for plans and fingerprints) use that list.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "syncline/array.h"
#include "syncline/dtype.h"
#include "syncline/shape.h"

namespace syncline {

template <class Attrs, class T>
struct Field {
  std::string_view name;
  T Attrs::*member;
};

template <class Attrs, class T>
constexpr Field<Attrs, T> field(std::string_view name, T Attrs::*member) {
  return {name, member};
}

struct NoAttrs {};

// Base of an op without attributes.
struct WithoutAttrs {
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
};

namespace attrs {

inline std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  return seed * 0xff51afd7ed558ccdULL;
}

inline std::uint64_t hash_of(double v) { return std::bit_cast<std::uint64_t>(v); }
inline std::uint64_t hash_of(const std::string& v) { return std::hash<std::string>{}(v); }
template <class T>
requires std::is_integral_v<T> || std::is_enum_v<T> std::uint64_t hash_of(T v) { return static_cast<std::uint64_t>(v); }
template <class T>
std::uint64_t hash_of(std::span<const T> v) {
  std::uint64_t h = v.size();
  for (const T& item : v) h = mix(h, hash_of(item));
  return h;
}
template <class T>
std::uint64_t hash_of(const std::vector<T>& v) {
  return hash_of(std::span(v));
}
inline std::uint64_t hash_of(const Shape& v) { return hash_of(v.dims()); }
template <class T>
std::uint64_t hash_of(const std::shared_ptr<T>& v) {
  return reinterpret_cast<std::uint64_t>(v.get());
}

inline void print_to(std::ostream& out, const std::string& v) { out << '\'' << v << '\''; }
inline void print_to(std::ostream& out, bool v) { out << (v ? "true" : "false"); }
template <class T>
void print_to(std::ostream& out, const std::vector<T>& v) {
  out << '[';
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (i > 0) out << ", ";
    out << v[i];
  }
  out << ']';
}
// Print the content of a shared object, never its address: fingerprints must not depend on the process.
template <class T>
void print_to(std::ostream& out, const std::shared_ptr<T>& v) {
  out << v->describe();
}
template <class T>
requires requires(std::ostream& o, const T& v) { o << v; }
void print_to(std::ostream& out, const T& v) { out << v; }

template <class Op>
std::uint64_t hash(const void* raw) {
  const auto& a = *static_cast<const typename Op::Attrs*>(raw);
  std::uint64_t h = 0;
  std::apply([&](const auto&... f) { ((h = mix(h, hash_of(a.*f.member))), ...); }, Op::fields);
  return h;
}

template <class Op>
bool equal(const void* left, const void* right) {
  const auto& a = *static_cast<const typename Op::Attrs*>(left);
  const auto& b = *static_cast<const typename Op::Attrs*>(right);
  return std::apply([&](const auto&... f) { return ((a.*f.member == b.*f.member) && ...); }, Op::fields);
}

template <class Op>
std::string print(const void* raw) {
  if constexpr (std::tuple_size_v<decltype(Op::fields)> == 0) return {};
  const auto& a = *static_cast<const typename Op::Attrs*>(raw);
  std::ostringstream out;
  std::apply(
      [&](const auto&... f) {
        int i = 0;
        ((out << (i++ > 0 ? ", " : "") << f.name << '=', print_to(out, a.*f.member)), ...);
      },
      Op::fields);
  return out.str();
}

}  // namespace attrs
}  // namespace syncline
