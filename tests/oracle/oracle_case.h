// Oracle cases: the results of an independent implementation, read from tests/oracle/fixtures, and the adapters that
// call our function with a case's arguments.
//
//   SYNCLINE_ORACLE_CALL(softmax) { return softmax(call.tensor(0), call.get("axis", -1)); }
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/axes.h"
#include "syncline/expr.h"

namespace syncline::testing {

struct OracleCase {
  std::string function, name;
  nlohmann::json args;
  std::vector<std::optional<Array>> inputs;  // empty: the argument is absent
  std::vector<Array> outputs;
  std::vector<std::optional<Array>> gradients;  // of the floating outputs' weighted sum; one per input, or none
  std::string tolerance;                        // a kind of tolerances.h
  std::vector<bool> open_batch;                 // per input: its leading dimension may be unknown
  bool ranks = true;                            // runs on several ranks
};

// True for cases of generate/edges.py.
inline bool is_edge(const OracleCase& row) { return row.name.ends_with("_edges"); }

// The functions of functions.tsv, in its order.
const std::vector<std::string>& oracle_functions();
// The section of the documentation that describes a function.
const std::string& oracle_group(const std::string& function);
// The operand that holds the rows of a batch; none: the function takes no batch.
std::optional<std::size_t> oracle_batch(const std::string& function);
// The cases of a function; none if it has no fixture. Throws IoError for a damaged fixture.
std::vector<OracleCase> oracle_cases(const std::string& function);

// An argument as a value of C++. Infinities and NaN are text in JSON.
template <class T>
T argument(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, double>) {
    if (value.is_string()) return std::stod(value.get<std::string>());
  }
  if constexpr (std::is_same_v<T, DType>) return parse_dtype(value.get<std::string>());
  else if constexpr (std::is_same_v<T, Shape>) {
    Shape shape;
    for (const auto& dim : value) shape.push_back(dim.is_null() ? kUnknown : dim.get<std::int64_t>());
    return shape;
  } else {
    return value.get<T>();
  }
}

// A case's arguments, and its operands in the form of the mode: placeholders, variables, permuted placeholders.
class Call {
 public:
  Call(const OracleCase& row, std::vector<Expr> tensors) : row_(row), tensors_(std::move(tensors)) {}

  int size() const { return static_cast<int>(tensors_.size()); }
  bool has(int i) const { return i < size() && row_.inputs[static_cast<std::size_t>(i)].has_value(); }
  // Operand i, lists flattened; empty where it is absent.
  Expr tensor(int i) const { return i < size() ? tensors_[static_cast<std::size_t>(i)] : Expr(); }
  // Operands first, first + 1, ...; `count` of them, or all that follow.
  std::vector<Expr> tensors(int first = 0, int count = -1) const;
  // The operand's value, for adapters that make variables or feed their own functions.
  const Array& array(int i) const { return row_.inputs.at(static_cast<std::size_t>(i)).value(); }

  bool has(const std::string& key) const { return row_.args.contains(key) && !row_.args[key].is_null(); }
  template <class T>
  T get(const std::string& key) const {
    return argument<T>(row_.args.at(key));
  }
  template <class T>
  T get(const std::string& key, T otherwise) const {
    return has(key) ? get<T>(key) : otherwise;
  }
  std::string get(const std::string& key, const char* otherwise) const { return get<std::string>(key, otherwise); }
  template <class T>
  std::optional<T> optional(const std::string& key) const {
    return has(key) ? std::optional<T>(get<T>(key)) : std::nullopt;
  }
  // A number or a list of numbers as a list; empty if absent.
  std::vector<int> list(const std::string& key) const;
  // The same as axes; all axes if absent.
  Axes axes(const std::string& key) const { return has(key) ? Axes(list(key)) : Axes(); }

 private:
  const OracleCase& row_;
  std::vector<Expr> tensors_;
};

// The result of an adapter: one tensor or several. Text, numbers and arrays become constants.
struct Answer {
  std::vector<Expr> outputs;
  Answer(const Expr& output) : outputs{output} {}                     // NOLINT(google-explicit-constructor)
  Answer(std::vector<Expr> several) : outputs(std::move(several)) {}  // NOLINT(google-explicit-constructor)
  Answer(std::initializer_list<Expr> several) : outputs(several) {}   // NOLINT(google-explicit-constructor)
  Answer(const Array& array) : Answer(as_tensor(array)) {}            // NOLINT(google-explicit-constructor)
  static Expr as_tensor(const Array& array);
  static Expr as_tensor(const std::string& text);  // its bytes, uint8
  static Expr as_tensor(const char* text) { return as_tensor(std::string(text)); }
  static Expr as_tensor(bool value) { return as_tensor(Array::scalar(value)); }
  static Expr as_tensor(int value) { return as_tensor(Array::scalar(std::int32_t{value})); }
  static Expr as_tensor(double value) { return as_tensor(Array::scalar(value)); }
  static Expr as_tensor(const Shape& shape);  // int32, like a tuple of Python; kUnknown is -1
};

using OracleCall = Answer (*)(const Call& call);
// The adapter of a function; null if there is none.
OracleCall oracle_call(const std::string& function);
std::vector<std::string> called_functions();
bool add_call(const char* function, OracleCall call);

#define SYNCLINE_ORACLE_CALL(function)                                                                               \
  static Answer oracle_##function(const Call& call);                                                                 \
  [[maybe_unused]] static const bool added_##function = ::syncline::testing::add_call(#function, oracle_##function); \
  static Answer oracle_##function([[maybe_unused]] const Call& call)

}  // namespace syncline::testing
