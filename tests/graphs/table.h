// The table of functions that programs consist of. An entry has one function that draws, builds and prints a line.
// While drawing, `Choices` returns random answers and records them on the line's tape; while building, it reads them
// from the tape.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncline/backend.h"
#include "syncline/session.h"
#include "tests/graphs/program.h"

namespace syncline::graphs {

// Values that a line may read.
struct Environment {
  Program* program = nullptr;
  const Building* how = nullptr;
  std::vector<Expr> inputs = {};
  std::vector<std::vector<Expr>> lines = {};
  std::vector<Expr> arguments = {};                // of the current body
  std::vector<std::vector<Expr>> body_lines = {};  // of the current body
  int depth = 0;                                   // nesting depth of bodies
};

struct Built {
  std::vector<Expr> values = {};
  std::string text = {};
  Check check = nullptr;
};

// A value of like's dtype and shape that depends on `value`.
Expr fit(const Expr& value, const Expr& like);

enum class Type : std::uint8_t { kFloating, kNumber, kInteger, kBool, kAny };

class Choices {
 public:
  // `random` is null while building.
  Choices(Environment& environment, Line& line, Random* random) : env_(environment), line_(line), random_(random) {}

  // Operands: any value of such a type, or a new input.
  Expr operand(const char* name, Type type, int least_ndim = 0, int most_ndim = 4);
  Expr floating(const char* name, int least_ndim = 0, int most_ndim = 4) {
    return operand(name, Type::kFloating, least_ndim, most_ndim);
  }
  Expr like(const char* name, const Expr& x);  // with x's dtype and shape
  Expr of_meta(const char* name, const Meta& meta);
  Expr broadcasting(const char* name, const Expr& x);              // with x's dtype and a shape that fits
  Expr of_shape(const char* name, Type type, const Shape& shape);  // with any dtype of the type
  // A new input.
  Expr fresh(const char* name, DType dtype, Shape shape, Pool pool = Pool::kTame, std::int64_t limit = 0);

  // A new floating input, which may have more elements than other inputs.
  Expr large(const char* name, Shape shape);
  // A new input of the kind, dtype, shape and pool of `input`. No other line reads it if it is sparse.
  Expr exactly(const char* name, const Input& input);

  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high);
  std::int64_t rows(const char* name);  // of a group
  bool flag(const char* name) { return integer(name, 0, 1) != 0; }
  double number(const char* name, const std::vector<double>& from);
  std::string word(const char* name, const std::vector<std::string>& from);
  DType dtype(const char* name, const std::vector<DType>& from);
  DType any_dtype(const char* name);
  int axis(const char* name, const Expr& x);               // may be negative
  std::vector<int> axes(const char* name, const Expr& x);  // any subset, ascending or descending
  std::vector<int> permutation(const char* name, int n);
  std::vector<std::int64_t> integers(const char* name, int n, std::int64_t low, std::int64_t high);
  RandomKey key(const char* name);
  // The results of the line's body `number` for `arguments`. Calls with the same number use the same body. The results
  // have the dtypes and shapes of `wanted`, which are the first arguments. If `wanted` is empty, there is one result of
  // any dtype and shape.
  std::vector<Expr> body(int number, const std::vector<Expr>& arguments, const std::vector<Expr>& wanted);

  DType floatx() const;
  static void require(bool condition) {
    if (!condition) throw Rejected{};
  }
  Built made(const Expr& value, std::string_view code, Check check = nullptr) { return {{value}, text(code), check}; }
  Built made(std::vector<Expr> values, std::string_view code) { return {std::move(values), text(code)}; }
  // The code with each drawn name replaced by its text.
  std::string text(std::string_view code) const;
  void call(const char* name, std::string text) {
    if (env_.how->text) names_[name] = std::move(text);
  }

 private:
  using Accept = std::function<bool(const Meta&)>;
  Expr find(const char* name, const Accept& accept, const std::function<Input()>& otherwise, int percent_new);
  Expr add(DType dtype, Shape shape, Pool pool, std::int64_t limit);
  Expr take(const char* name);  // the next operand, while building
  Expr value(const Ref& ref) const;
  std::vector<Ref> candidates(const Accept& accept) const;
  Ref add_input(Input input);
  std::int64_t draw(std::int64_t n);  // from 0 to n - 1
  DType dtype_of(Type type);
  std::int64_t dimension();
  void draw_body(Body& body, const std::vector<Expr>& wanted);
  std::string print_body(const std::vector<std::string>& lines, const Body& body) const;

  Environment& env_;
  Line& line_;
  Random* random_;
  std::size_t next_operand_ = 0, next_number_ = 0;
  std::map<std::string, std::string, std::less<>> names_;
};

#define SYNCLINE_MADE(...) c.made((__VA_ARGS__), #__VA_ARGS__)
#define SYNCLINE_CHECKED(check, ...) c.made((__VA_ARGS__), #__VA_ARGS__, check)

struct Entry {
  std::string name;
  Built (*line)(Choices& c);
  int weight = 4;
  int most_depth = 9;  // the largest nesting depth of bodies that may contain it
};

// The whole table, and its parts.
const std::vector<Entry>& table();
std::vector<Entry> elementwise_entries();
std::vector<Entry> reduction_entries();
std::vector<Entry> shape_entries();
std::vector<Entry> product_entries();
std::vector<Entry> network_entries();
std::vector<Entry> window_entries();
std::vector<Entry> control_entries();
std::vector<Entry> other_entries();

// Appends a random line (or a line of the entry `name`) and its values to `lines` and `values`. Returns false if 20
// attempts are rejected.
bool draw_line(Environment& env, std::vector<Line>& lines, std::vector<std::vector<Expr>>& values, Random& random,
               std::string_view name = {});
// Builds lines and appends their values.
void build_lines(Environment& env, const std::vector<Line>& lines, std::vector<std::vector<Expr>>& values,
                 std::vector<std::string>* texts, std::vector<Check>* checks);
std::string name_of_ref(const Ref& ref);
// Declares the values of the line of `ref`.
std::string declaration_text(Ref ref, std::size_t values, const std::string& code);

}  // namespace syncline::graphs
