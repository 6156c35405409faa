#include <algorithm>
#include <cctype>
#include <cmath>

#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

constexpr std::int64_t kMostElements = 20000;

bool is_of(Type type, DType dtype) {
  switch (type) {
    case Type::kFloating: return is_floating(dtype);
    case Type::kNumber: return dtype != DType::kBool;
    case Type::kInteger: return is_integer(dtype);
    case Type::kBool: return dtype == DType::kBool;
    case Type::kAny: return true;
  }
  return false;
}

bool fits_broadcast(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.ndim(), b.ndim()); ++i) {
    const std::int64_t m = a[a.ndim() - i], n = b[b.ndim() - i];
    if (m != n && m != 1 && n != 1) return false;
  }
  return true;
}

std::string number_text(double v) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", v);
  return text;
}

std::string dtype_text(DType dtype) {
  std::string name(name_of(dtype));
  name[0] = static_cast<char>(std::toupper(name[0]));
  return "DType::k" + name;
}

template <class T>
std::string list_text(const std::string& type, const std::vector<T>& values) {
  std::string text = type + "{";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "}";
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string Choices::text(std::string_view code) const {
  if (!env_.how->text) return {};
  std::string result;
  for (std::size_t i = 0; i < code.size();) {
    std::size_t end = i;
    while (end < code.size() && is_name(code[end])) ++end;
    if (end == i) {
      result += code[i++];
      continue;
    }
    const std::string_view word = code.substr(i, end - i);
    const bool member = i > 0 && code[i - 1] == '.';
    const auto known = names_.find(word);
    result += known != names_.end() && !member ? known->second : std::string(word);
    i = end;
  }
  return result;
}

DType Choices::floatx() const { return env_.how->wide ? DType::kFloat64 : env_.program->floatx; }

std::int64_t Choices::draw(std::int64_t n) {
  if (random_ != nullptr) {
    line_.tape.push_back(random_->below(n));
    return line_.tape.back();
  }
  require(next_number_ < line_.tape.size());
  return line_.tape[next_number_++];
}

// ---- operands ----

Expr Choices::value(const Ref& ref) const {
  const auto line = static_cast<std::size_t>(ref.line), output = static_cast<std::size_t>(ref.output);
  const auto& lines = ref.scope == Ref::kLine ? env_.lines : env_.body_lines;
  switch (ref.scope) {
    case Ref::kInput: require(line < env_.inputs.size()); return env_.inputs[line];
    case Ref::kArgument: require(line < env_.arguments.size()); return env_.arguments[line];
    default: require(line < lines.size() && output < lines[line].size()); return lines[line][output];
  }
}

std::vector<Ref> Choices::candidates(const Accept& accept) const {
  std::vector<Ref> found;
  auto offer = [&](const Ref& ref, const Expr& e, int times) {
    if (e && e.shape().is_known() && e.shape().size() <= kMostElements && accept(e.meta()))
      found.insert(found.end(), times, ref);
  };
  for (std::size_t i = 0; i < env_.inputs.size(); ++i)
    if (!env_.program->inputs[i].sparse) offer({Ref::kInput, static_cast<int>(i), 0}, env_.inputs[i], 1);
  for (std::size_t i = 0; i < env_.lines.size(); ++i)
    for (std::size_t k = 0; k < env_.lines[i].size(); ++k)
      offer({Ref::kLine, static_cast<int>(i), static_cast<int>(k)}, env_.lines[i][k], env_.depth > 0 ? 1 : 3);
  for (std::size_t i = 0; i < env_.arguments.size(); ++i)
    offer({Ref::kArgument, static_cast<int>(i), 0}, env_.arguments[i], 6);
  for (std::size_t i = 0; i < env_.body_lines.size(); ++i)
    for (std::size_t k = 0; k < env_.body_lines[i].size(); ++k)
      offer({Ref::kBodyLine, static_cast<int>(i), static_cast<int>(k)}, env_.body_lines[i][k], 8);
  return found;
}

Ref Choices::add_input(Input input) {
  Program& program = *env_.program;
  if (input.shape.ndim() > 0 && input.group < 0)
    for (std::size_t g = 0; g < program.rows.size(); ++g)
      if (input.shape[0] == program.rows[g] && random_->chance(70)) input.group = static_cast<int>(g);
  const std::int64_t kind = random_->below(10);
  input.kind = input.group >= 0 || kind < 4 ? Input::kFed : kind < 7 ? Input::kVariable : Input::kConstant;
  if (input.kind == Input::kConstant && random_->chance(25) && input.pool != Pool::kEdges) input.kind = Input::kFill;
  input.key = random_->next() & 0xffff;
  program.inputs.push_back(input);
  env_.inputs.push_back(placeholder({.shape = input.shape, .dtype = input.dtype}));
  return {Ref::kInput, static_cast<int>(program.inputs.size()) - 1, 0};
}

Expr Choices::take(const char* name) {
  require(next_operand_ < line_.operands.size());
  const Ref ref = line_.operands[next_operand_++];
  if (env_.how->text) names_[name] = name_of_ref(ref);
  return value(ref);
}

Expr Choices::find(const char* name, const Accept& accept, const std::function<Input()>& otherwise, int percent_new) {
  if (random_ == nullptr) return take(name);
  const std::vector<Ref> found = candidates(accept);
  const bool add = found.empty() || random_->chance(percent_new);
  line_.operands.push_back(add ? add_input(otherwise()) : random_->pick(found));
  return value(line_.operands.back());
}

DType Choices::dtype_of(Type type) {
  static const std::vector<DType> kIntegers{DType::kInt32, DType::kInt64, DType::kInt32,
                                            DType::kInt16, DType::kInt8,  DType::kUint8};
  switch (type) {
    case Type::kFloating: return floatx();
    case Type::kInteger: return random_->pick(kIntegers);
    case Type::kBool: return DType::kBool;
    case Type::kNumber: return random_->chance(80) ? floatx() : random_->pick(kIntegers);
    case Type::kAny:
      return random_->chance(70) ? floatx() : random_->chance(30) ? DType::kBool : random_->pick(kIntegers);
  }
  return floatx();
}

std::int64_t Choices::dimension() {
  static const std::vector<std::int64_t> kSmall{1, 2, 3, 4, 5, 1, 2, 3, 4, 7, 0, 1, 2, 3, 4, 11};
  static const std::vector<std::int64_t> kLarge{16, 17, 31, 33, 64, 65, 96, 130};
  return random_->chance(4) ? random_->pick(kLarge) : random_->pick(kSmall);
}

Expr Choices::operand(const char* name, Type type, int least_ndim, int most_ndim) {
  return find(
      name,
      [&](const Meta& m) {
        return is_of(type, m.dtype) && m.shape.ndim() >= least_ndim && m.shape.ndim() <= most_ndim;
      },
      [&] {
        Input input{.dtype = dtype_of(type), .shape = {}, .pool = env_.program->edges ? Pool::kEdges : Pool::kTame};
        if (random_->chance(25)) input.pool = Pool::kTies;
        const auto ndim = std::min<std::int64_t>(most_ndim, std::max<std::int64_t>(least_ndim, random_->below(4)));
        for (int i = 0; i < ndim; ++i)
          input.shape.push_back(i == 0 && random_->chance(70) ? random_->pick(env_.program->rows) : dimension());
        require(input.shape.size() <= kMostElements);
        return input;
      },
      env_.inputs.size() < 2 ? 60 : 8);
}

Expr Choices::of_meta(const char* name, const Meta& meta) {
  return find(
      name, [&](const Meta& m) { return m == meta; },
      [&] {
        return Input{
            .dtype = meta.dtype, .shape = meta.shape, .pool = env_.program->edges ? Pool::kEdges : Pool::kTame};
      },
      20);
}

Expr Choices::like(const char* name, const Expr& x) { return of_meta(name, x.meta()); }

Expr Choices::of_shape(const char* name, Type type, const Shape& shape) {
  return find(
      name, [&](const Meta& m) { return is_of(type, m.dtype) && m.shape == shape; },
      [&] {
        return Input{.dtype = dtype_of(type), .shape = shape, .pool = type == Type::kBool ? Pool::kTies : Pool::kTame};
      },
      20);
}

Expr Choices::broadcasting(const char* name, const Expr& x) {
  return find(
      name,
      [&](const Meta& m) { return m.dtype == x.dtype() && (fits_broadcast(m.shape, x.shape()) || random_->chance(2)); },
      [&] {
        Shape shape = x.shape();
        while (shape.ndim() > 0 && random_->chance(20)) shape.erase(0);
        for (int i = 0; i < shape.ndim(); ++i)
          if (random_->chance(25)) shape[i] = shape[i] == 1 ? random_->below(6) : random_->chance(3) ? 0 : 1;
        if (shape.ndim() < 4 && random_->chance(10)) shape.insert(0, random_->pick(env_.program->rows));
        require(shape.size() <= kMostElements);
        return Input{.dtype = x.dtype(), .shape = shape, .pool = env_.program->edges ? Pool::kEdges : Pool::kTame};
      },
      25);
}

Expr Choices::fresh(const char* name, DType dtype, Shape shape, Pool pool, std::int64_t limit) {
  if (random_ == nullptr) return take(name);
  require(shape.size() <= kMostElements);
  return add(dtype, std::move(shape), pool, limit);
}

Expr Choices::large(const char* name, Shape shape) {
  if (random_ == nullptr) return take(name);
  return add(floatx(), std::move(shape), env_.program->edges ? Pool::kEdges : Pool::kTame, 0);
}

Expr Choices::add(DType dtype, Shape shape, Pool pool, std::int64_t limit) {
  for (const std::int64_t n : shape) require(n >= 0);
  line_.operands.push_back(add_input({.dtype = dtype, .shape = std::move(shape), .pool = pool, .limit = limit}));
  return value(line_.operands.back());
}

Expr Choices::exactly(const char* name, const Input& input) {
  const Expr leaf = fresh(name, input.dtype, input.shape, input.pool);
  if (random_ == nullptr) return leaf;
  env_.program->inputs.back().kind = input.kind;
  env_.program->inputs.back().sparse = input.sparse;
  return leaf;
}

// ---- numbers ----

std::int64_t Choices::integer(const char* name, std::int64_t low, std::int64_t high) {
  if (random_ != nullptr) require(low <= high);
  const std::int64_t drawn = random_ != nullptr ? low + random_->below(high - low + 1) : draw(0);
  if (random_ != nullptr) line_.tape.push_back(drawn);
  if (env_.how->text) names_[name] = std::to_string(drawn);
  return drawn;
}

std::int64_t Choices::rows(const char* name) {
  const auto& groups = env_.program->rows;
  const std::int64_t drawn = groups[static_cast<std::size_t>(draw(static_cast<std::int64_t>(groups.size())))];
  if (env_.how->text) names_[name] = std::to_string(drawn);
  return drawn;
}

double Choices::number(const char* name, const std::vector<double>& from) {
  const double drawn = from[static_cast<std::size_t>(draw(static_cast<std::int64_t>(from.size())))];
  if (env_.how->text) names_[name] = number_text(drawn);
  return drawn;
}

std::string Choices::word(const char* name, const std::vector<std::string>& from) {
  const std::string drawn = from[static_cast<std::size_t>(draw(static_cast<std::int64_t>(from.size())))];
  if (env_.how->text) names_[name] = '"' + drawn + '"';
  return drawn;
}

DType Choices::dtype(const char* name, const std::vector<DType>& from) {
  DType drawn = from[static_cast<std::size_t>(draw(static_cast<std::int64_t>(from.size())))];
  if (env_.how->wide && is_floating(drawn)) drawn = DType::kFloat64;
  if (env_.how->text) names_[name] = dtype_text(drawn);
  return drawn;
}

DType Choices::any_dtype(const char* name) {
  return dtype(name, {DType::kFloat32, DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kInt32, DType::kInt64,
                      DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16});
}

int Choices::axis(const char* name, const Expr& x) {
  if (random_ != nullptr) require(x.ndim() > 0);
  return static_cast<int>(integer(name, -x.ndim(), x.ndim() - 1));
}

std::vector<int> Choices::axes(const char* name, const Expr& x) {
  std::vector<int> drawn;
  for (int i = 0; i < x.ndim(); ++i) {
    const std::int64_t way = draw(5);  // 0 to 2: without axis i; 3: i; 4: i - ndim
    if (way >= 3) drawn.push_back(way == 3 ? i : i - x.ndim());
  }
  if (drawn.size() > 1 && draw(2) == 1) std::reverse(drawn.begin(), drawn.end());
  if (env_.how->text) names_[name] = list_text("std::vector<int>", drawn);
  return drawn;
}

std::vector<int> Choices::permutation(const char* name, int n) {
  std::vector<int> drawn;
  for (int i = 0; i < n; ++i) drawn.push_back(i);
  for (int i = n - 1; i > 0; --i)
    std::swap(drawn[static_cast<std::size_t>(i)], drawn[static_cast<std::size_t>(draw(i + 1))]);
  if (env_.how->text) names_[name] = list_text("std::vector<int>", drawn);
  return drawn;
}

std::vector<std::int64_t> Choices::integers(const char* name, int n, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < n; ++i) drawn.push_back(integer(name, low, high));
  if (env_.how->text) names_[name] = list_text("std::vector<std::int64_t>", drawn);
  return drawn;
}

RandomKey Choices::key(const char* name) {
  const auto seed = static_cast<std::uint64_t>(draw(3)), op = static_cast<std::uint64_t>(draw(1000));
  if (env_.how->text) names_[name] = join_text("RandomKey{", seed, ", ", op, "}");
  return {seed, op};
}

// ---- bodies ----

Expr fit(const Expr& value, const Expr& like) {
  const Expr same = value.dtype() == like.dtype() ? value : cast(value, like.dtype());
  return broadcast_like(like.dtype() == DType::kBool ? any(same) : sum(same), like);
}

void Choices::draw_body(Body& body, const std::vector<Expr>& wanted) {
  const std::int64_t lines = 1 + random_->below(4);
  for (std::int64_t i = 0; i < lines; ++i) draw_line(env_, body.lines, env_.body_lines, *random_);
  for (std::size_t k = 0; k < std::max<std::size_t>(1, wanted.size()); ++k) {
    std::vector<Ref> found;
    if (!wanted.empty()) found = candidates([&](const Meta& m) { return m == wanted[k].meta(); });
    if (found.empty() || random_->chance(20)) found = candidates([](const Meta&) { return true; });
    require(!found.empty());
    body.results.push_back(random_->pick(found));
    body.fitted.push_back(!wanted.empty() && !(value(body.results.back()).meta() == wanted[k].meta()));
  }
}

std::vector<Expr> Choices::body(int number, const std::vector<Expr>& arguments, const std::vector<Expr>& wanted) {
  const auto n = static_cast<std::size_t>(number);
  const std::vector<Expr> outer_arguments = std::exchange(env_.arguments, arguments);
  std::vector<std::vector<Expr>> outer_lines = std::exchange(env_.body_lines, {});
  ++env_.depth;
  std::vector<std::string> texts;
  const auto restore = [&] {
    env_.arguments = outer_arguments;
    env_.body_lines = outer_lines;
    --env_.depth;
  };
  std::vector<Expr> results;
  try {
    if (random_ != nullptr && line_.bodies.size() <= n) {
      line_.bodies.resize(n + 1);
      draw_body(line_.bodies[n], wanted);
    } else {
      require(n < line_.bodies.size());
      build_lines(env_, line_.bodies[n].lines, env_.body_lines, env_.how->text ? &texts : nullptr, nullptr);
    }
    for (std::size_t k = 0; k < line_.bodies[n].results.size(); ++k) {
      const Expr result = value(line_.bodies[n].results[k]);
      results.push_back(line_.bodies[n].fitted[k] ? fit(result, wanted[k]) : result);
    }
    if (env_.how->text) names_[number == 0 ? "body" : "other"] = print_body(texts, line_.bodies[n]);
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return results;
}

std::string Choices::print_body(const std::vector<std::string>& lines, const Body& body) const {
  std::string text = "[&]([[maybe_unused]] const std::vector<Expr>& a) -> std::vector<Expr> { ";
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += declaration_text({Ref::kBodyLine, static_cast<int>(i), 0}, env_.body_lines[i].size(), lines[i]) + " ";
  text += "return {";
  for (std::size_t k = 0; k < body.results.size(); ++k) {
    const std::string result = name_of_ref(body.results[k]);
    text += (k > 0 ? ", " : "") + (body.fitted[k] ? "fit(" + result + ", a[" + std::to_string(k) + "])" : result);
  }
  return text + "}; }";
}

}  // namespace syncline::graphs
