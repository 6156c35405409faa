#include "syncline/training/accumulation.h"

#include "ops/graph/substitute.h"
#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"

namespace syncline {

Update Accumulation::when_due(const Update& update) const {
  Update due = syncline::update(update.target, switch_(waiting, update.target.expr(), update.value));
  due.moves = update.moves;
  return due;
}

Accumulation accumulate_gradients(std::span<const Expr> gradients, std::span<const Variable> variables,
                                  std::int64_t steps) {
  if (gradients.size() != variables.size())
    fail<ValueError>("accumulate_gradients: ", gradients.size(), " gradients are given for ", variables.size(),
                     " variables");
  if (steps < 1) fail<ValueError>("accumulate_gradients: the number of steps is ", steps, "; give 1 or more");
  Accumulation a;
  const Variable count = variable(Array::scalar<std::int64_t>(0), {.name = "accumulated/batches"});
  a.state = {count};
  const Expr first = equal(count, scalar_like(0, count));
  a.waiting = less(count, scalar_like(static_cast<double>(steps - 1), count));
  const Expr next = count.expr() + scalar_like(1, count);
  a.updates = {update(count, select(a.waiting, next, scalar_like(0, count)))};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const DType own = variables[i].dtype(), wide = own == DType::kFloat16 ? DType::kFloat32 : own;
    const Variable sum =
        variable(Array(wide, variables[i].shape()), {.name = "accumulated/" + variables[i].name(), .partial = true});
    a.state.push_back(sum);
    // Select instead of a product with 0: the old sum may hold inf or NaN.
    const Expr added = select(first, scalar_like(0, sum), sum) + cast(gradients[i], wide);
    a.updates.push_back(update(sum, added));
    a.totals.push_back(cast(added / static_cast<double>(steps), own));
  }
  return a;
}

AccumulatingOptimizer accumulate(const Optimizer& optimizer, std::int64_t steps) {
  Accumulation a = accumulate_gradients(optimizer.gradients, optimizer.variables, steps);
  Replacements totals;
  for (std::size_t i = 0; i < a.totals.size(); ++i) totals[optimizer.gradients[i]] = a.totals[i];
  std::vector<Expr> values;
  for (const Update& u : optimizer.updates) values.push_back(u.value);
  values = substitute(values, totals);
  AccumulatingOptimizer result{optimizer, std::move(a.state)};
  for (std::size_t i = 0; i < values.size(); ++i)
    result.updates[i] = a.when_due({optimizer.updates[i].target, values[i]});
  result.updates.insert(result.updates.end(), a.updates.begin(), a.updates.end());
  return result;
}

}  // namespace syncline
