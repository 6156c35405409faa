// A random program: inputs, lines that each call one public function, outputs, updates, and the calls that are made of
// it.
//
// Everything that was drawn is kept as numbers (a line's tape), so a program can be built again with other kinds of
// inputs, in float64, or with lines taken out, and printed as C++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline::graphs {

// Splitmix64: the same numbers everywhere.
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

// Which values an input holds.
enum class Pool : std::uint8_t {
  kTame,         // distinct, in [-1.5, 1.5]; integers in [-3, 3]
  kPositive,     // in [0.5, 1.5]
  kTies,         // few different ones, zeros among them
  kEdges,        // NaN, infinities, huge, tiny and negative ones among the others
  kProbability,  // in [0.05, 0.95]
  kIndex,        // whole numbers in [0, limit)
};

struct Input {
  enum Kind : std::uint8_t { kFed, kVariable, kConstant, kFill };
  Kind kind = kFed;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  int group = -1;  // of inputs that have their rows in common, whose number comes with each call; -1: none
  Pool pool = Pool::kTame;
  std::int64_t limit = 0;
  std::uint64_t key = 0;
};

// What a line reads.
struct Ref {
  enum Scope : std::uint8_t { kInput, kLine, kArgument, kBodyLine };
  Scope scope = kInput;
  int line = 0, output = 0;  // of an input or argument: its number, 0
  friend bool operator==(const Ref&, const Ref&) = default;
};

struct Body;
struct Line {
  int entry = 0;  // of the table
  std::vector<Ref> operands = {};
  std::vector<std::int64_t> tape = {};
  std::vector<Body> bodies = {};
};
// A function that a line hands over.
struct Body {
  std::vector<Line> lines = {};
  std::vector<Ref> results = {};
  std::vector<bool> fitted = {};  // the result's sum in the wanted shape
};

struct Call {
  enum Event : std::uint8_t { kNothing, kTrain, kTest, kClear };
  Event before = kNothing;              // what the program does to its session
  std::vector<std::int64_t> rows = {};  // of each group
  std::vector<std::vector<std::int64_t>> ranks =
      {};  // of each group on each rank, for feeds that ranks bring themselves
};

struct NewValue {
  int input = 0;
  Ref value = {};
};

struct Program {
  std::uint64_t seed = 0;
  DType floatx = DType::kFloat32;
  std::vector<std::int64_t> rows = {};  // of each group, while it was drawn
  std::vector<Input> inputs = {};
  std::vector<Line> lines = {};
  std::vector<Ref> outputs = {};
  std::vector<NewValue> updates = {};
  std::vector<Call> calls = {};
  bool gradient = true;  // of the sum of the floating outputs, by all floating inputs, is an output as well
  int sides = 0;         // how many ranks run it, besides one: 0, 2 or 3
  bool edges = false;    // values at the edges: compared on one rank only
};

Array values_of(DType dtype, const Shape& shape, Pool pool, std::int64_t limit, std::uint64_t key);
// An input's value in a call, in the program's dtype or (with `wide`) float64.
Array value_in(const Program& program, const Input& input, std::size_t call, bool wide);
Shape shape_in(const Input& input, const Call& call);

Program draw_program(std::uint64_t seed);

// How a program is built.
struct Building {
  bool open = true;      // the rows of groups are unknown until they are fed
  bool all_fed = false;  // every input is a placeholder
  bool wide = false;     // float64 for float32 and float16
  bool text = false;     // keep what the lines look like
};

using Check = std::string (*)(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);

struct Graph {
  std::vector<Expr> inputs;
  std::vector<std::vector<Expr>> lines;
  std::vector<std::string> texts;  // of lines
  std::vector<Check> checks;       // of lines; may be null
  std::vector<Expr> outputs;       // then the gradients, one a floating input (zeros where there is none)
  std::size_t values = 0;          // outputs before the gradients
  std::vector<Expr> updates;       // one a new value
  Expr loss;                       // empty: no gradients
};
// Throws Rejected or what the functions throw.
Graph build(const Program& program, const Building& how);

struct Rejected {};

// The program as a C++ test, and one value.
std::string print(const Program& program);
std::string print_array(const Array& value);

}  // namespace syncline::graphs
