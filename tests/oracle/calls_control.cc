// Choice, maps, folds and print_tensor, with the functions of tests/oracle/generate/control.py.
#include "syncline/backend/control.h"

#include <gtest/gtest.h>

#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

Expr is_larger(const Expr& x, const Expr& y) { return greater(sum(x), y); }

MapFunction map_function(const std::string& kind, const Expr& weights) {
  if (kind == "square") return [](const Expr& e) { return e * e; };
  if (kind == "sum") return [](const Expr& e) { return sum(e * e); };
  if (kind == "product") return [=](const Expr& e) { return dot(e, weights); };
  if (kind == "affine") return [=](const Expr& e) { return e * weights + sum(e); };
  if (kind == "softmax") return [](const Expr& e) { return exp(e) / sum(exp(e)); };
  if (kind == "cast") return [](const Expr& e) { return cast(e, DType::kFloat32) * 0.5; };
  return [](const Expr& e) { return is_larger(e, scalar_like(0, e)); };
}

FoldFunction fold_function(const std::string& kind) {
  if (kind == "add") return [](const Expr& a, const Expr& e) { return a + e; };
  if (kind == "sub") return [](const Expr& a, const Expr& e) { return e - a; };
  if (kind == "decay") return [](const Expr& a, const Expr& e) { return a * 0.5 + tanh(e); };
  if (kind == "product") return [](const Expr& a, const Expr& e) { return dot(a, e); };
  if (kind == "count") return [](const Expr& a, const Expr&) { return a + 1.0; };
  return [](const Expr& a, const Expr& e) { return a + sum(e * e); };
}

template <class Fold, class FoldOfMany>
Exprs folded(const Call& call, Fold fold, FoldOfMany fold_of_many) {
  const auto kind = call.get<std::string>("kind");
  if (kind != "two") return {fold(fold_function(kind), call.tensor(0), call.tensor(2))};
  const FoldFunctionOfMany fn = [](const Exprs& a, const Exprs& e) { return Exprs{a[0] * e[1] + a[1], e[0] - a[1]}; };
  return fold_of_many(fn, call.tensors(0, 2), call.has(2) ? call.tensors(2, 2) : Exprs{});
}

}  // namespace

SYNCLINE_ORACLE_CALL(switch) {
  const Expr condition = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  const auto kind = call.get<std::string>("kind");
  if (kind == "tensors") return switch_(condition, a, b);
  if (kind == "then_function")
    return switch_(
        condition, [&] { return a * b; }, b);
  if (kind == "else_function") return switch_(condition, a, [&] { return square(b); });
  if (kind == "functions")
    return switch_(
        condition, [&] { return exp(a); }, [&] { return a + b; });
  if (kind == "logarithm")
    return switch_(
        condition, [&] { return log(a); }, [&] { return a * b; });
  if (kind == "mixing")
    return switch_(
        condition, [&] { return a - mean(a, {0}); }, [&] { return softmax(b); });
  if (kind == "data")
    return switch_(
        is_larger(a, sum(b)), [&] { return a * a; }, [&] { return b * a; });
  const auto nested = [&] {
    return switch_(
        is_larger(b, scalar_like(0, b)), [&] { return exp(a); }, [&] { return b; });
  };
  return switch_(condition, nested, [&] { return tanh(b); });
}

SYNCLINE_ORACLE_CALL(map_fn) {
  const auto kind = call.get<std::string>("kind");
  const auto dtype = call.optional<DType>("dtype");
  if (kind != "pair" && kind != "two") return map_fn(map_function(kind, call.tensor(2)), call.tensor(0), dtype);
  const MapFunctionOfMany fn = [&](const Exprs& e) {
    return kind == "pair" ? Exprs{e[0] * e[1]} : Exprs{e[0] + e[1], sum(e[0])};
  };
  return map_fn(fn, call.tensors(0, 2), std::vector<DType>(kind == "pair" ? 1 : 2, *dtype));
}

SYNCLINE_ORACLE_CALL(foldl) {
  return folded(
      call, [](const FoldFunction& fn, const Expr& x, const Expr& first) { return foldl(fn, x, first); },
      [](const FoldFunctionOfMany& fn, const Exprs& x, const Exprs& first) { return foldl(fn, x, first); });
}

SYNCLINE_ORACLE_CALL(foldr) {
  return folded(
      call, [](const FoldFunction& fn, const Expr& x, const Expr& first) { return foldr(fn, x, first); },
      [](const FoldFunctionOfMany& fn, const Exprs& x, const Exprs& first) { return foldr(fn, x, first); });
}

SYNCLINE_ORACLE_CALL(print_tensor) {
  if (call.has("through")) return print_tensor(call.tensor(0), call.get<std::string>("message"));
  const Array& value = call.array(0);
  const Expr x = placeholder({.shape = value.shape(), .dtype = value.dtype()});
  Function f({x}, {print_tensor(x, call.get<std::string>("message"))});
  ::testing::internal::CaptureStdout();
  const Array result = f({value})[0];
  const std::string text = ::testing::internal::GetCapturedStdout();
  return Exprs{Answer::as_tensor(result), Answer::as_tensor(text)};
}

}  // namespace syncline::testing
