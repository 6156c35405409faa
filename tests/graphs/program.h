// A random program: inputs, lines that each call one public function, outputs, updates, and calls of the program.
//
// All drawn numbers are recorded (a line's tape). So a program can be built again with other kinds of inputs, in
// float64 or without some lines, and can be printed as C++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline::graphs {

// Splitmix64: the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size())))];
  }

 private:
  std::uint64_t state_;
};

// The kind of values of an input.
enum class Pool : std::uint8_t {
  kTame,         // distinct, in [-1.5, 1.5]; integers in [-3, 3]
  kPositive,     // in [0.5, 1.5]
  kTies,         // few different values, including 0
  kEdges,        // includes NaN, infinities, huge, tiny and negative values
  kProbability,  // in [0.05, 0.95]
  kIndex,        // whole numbers in [0, limit)
};

struct Input {
  enum Kind : std::uint8_t { kFed, kVariable, kConstant, kFill };
  Kind kind = kFed;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  bool sparse = false;  // a sparse placeholder (a dense one if every input is fed), of a dense value
  int group = -1;       // inputs of a group have the same number of rows, which each call sets; -1: none
  Pool pool = Pool::kTame;
  std::int64_t limit = 0;
  std::uint64_t key = 0;
};

// An operand of a line.
struct Ref {
  enum Scope : std::uint8_t { kInput, kLine, kArgument, kBodyLine };
  Scope scope = kInput;
  int line = 0, output = 0;  // for kInput and kArgument: its index, and 0
  friend bool operator==(const Ref&, const Ref&) = default;
};

struct Body;
struct Line {
  int entry = 0;  // index in table()
  std::vector<Ref> operands = {};
  std::vector<std::int64_t> tape = {};
  std::vector<Body> bodies;
};
// A function that a line passes as an argument.
struct Body {
  std::vector<Line> lines = {};
  std::vector<Ref> results = {};
  std::vector<bool> fitted = {};  // per result: returns its sum, broadcast to the wanted shape
};

struct Call {
  enum Event : std::uint8_t { kNothing, kTrain, kTest, kClear };
  Event before = kNothing;                            // changes the session before the call
  std::vector<std::int64_t> rows = {};                // of each group
  std::vector<std::vector<std::int64_t>> ranks = {};  // [group][rank], for local feeds of the first ranks
};

struct NewValue {
  enum Kind : std::uint8_t { kSet, kAdd, kSubtract, kAverage };
  int input = 0;
  Ref value = {};
  Kind kind = kSet;
};

struct Program {
  std::uint64_t seed = 0;
  DType floatx = DType::kFloat32;
  std::vector<std::int64_t> rows = {};  // of each group, when the program was drawn
  std::vector<Input> inputs = {};
  std::vector<Line> lines = {};
  std::vector<Ref> outputs = {};
  std::vector<NewValue> updates = {};
  std::vector<Call> calls = {};
  bool gradient = true;             // adds the gradients of the floating outputs' sum by all floating inputs
  bool edges = false;               // inputs have values of Pool::kEdges; most programs then have one line
  std::vector<int> ranks = {2, 3};  // the numbers of ranks that also run it
};

bool has_gradient(const Input& input);

Array values_of(DType dtype, const Shape& shape, Pool pool, std::int64_t limit, std::uint64_t key);
// Its `key` for the value of an input in a call.
std::uint64_t key_in(const Input& input, std::size_t call);
// An input's value in a call, in the program's dtype or (with `wide`) float64.
Array value_in(const Program& program, const Input& input, std::size_t call, bool wide);
Shape shape_in(const Input& input, const Call& call);

Program draw_program(std::uint64_t seed);

// How a program is built.
struct Building {
  bool open = true;      // the rows of groups are unknown until they are fed
  bool all_fed = false;  // every input is a placeholder
  bool wide = false;     // float64 for float32 and float16
  bool text = false;     // record the lines as C++
};

using Check = std::string (*)(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);

struct Graph {
  std::vector<Expr> inputs;
  std::vector<std::vector<Expr>> lines;
  std::vector<std::string> texts;  // one per line
  std::vector<Check> checks;       // one per line; may be null
  std::vector<Expr> outputs;       // then the gradients, one per floating input (zeros if it has none)
  std::size_t values = 0;          // number of outputs before the gradients
  std::vector<Expr> operands;      // one per NewValue: what its public function takes
  std::vector<Expr> updates;       // one per NewValue: the variable's next value
  Expr loss;                       // empty: no gradients
};
// Throws Rejected and the errors of the functions.
Graph build(const Program& program, const Building& how);

struct Rejected {};

// The update of a variable by the public function.
Update update_of(const NewValue& u, const Variable& x, const Expr& operand);

// The program as a C++ test.
std::string print(const Program& program);

}  // namespace syncline::graphs
