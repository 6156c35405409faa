#include "syncline/training/optimizers.h"

#include "syncline/backend/config.h"
#include "syncline/backend/core.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {

// What all optimizers have: gradients, learning rate, and the number of steps as the only weight.
Optimizer start(const std::string& name, const Expr& loss, std::span<const Variable> variables, double learning_rate) {
  const std::vector<Expr> wrt(variables.begin(), variables.end());
  Optimizer s;
  s.gradients = gradients(loss, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    if (!s.gradients[i])
      fail<ValueError>(name, ": the loss does not depend on variable '", variables[i].name(),
                       "'; remove it from the variables, or use it in the loss");
  const Variable iterations = variable(Array::scalar<std::int64_t>(0), {.name = name + "/iterations"});
  s.learning_rate = variable(Array::scalar(learning_rate).cast(loss.dtype()), {.name = name + "/lr"});
  s.variables.assign(variables.begin(), variables.end());
  s.weights = {iterations};
  s.updates = {update_add(iterations, scalar_like(1, iterations))};
  return s;
}

// A zero-initialized variable of x's shape in the optimizer's state.
Variable slot(Optimizer& s, const std::string& optimizer, const Variable& x, const std::string& what) {
  const Variable v = variable(Array(x.dtype(), x.shape()), {.name = optimizer + '/' + x.name() + '/' + what});
  s.weights.push_back(v);
  return v;
}

// Updates x to `new_x`, projected by x's constraint.
Update moved(const Variable& x, const Expr& new_x) { return update(x, x.constraint() ? x.constraint()(new_x) : new_x); }

}  // namespace

Optimizer sgd(const Expr& loss, std::span<const Variable> variables, const SgdOptions& options) {
  Optimizer s = start("sgd", loss, variables, options.learning_rate);
  const Expr& lr = s.learning_rate;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& x = variables[i];
    const Expr change = lr * s.gradients[i];
    if (options.momentum == 0) {
      s.updates.push_back(moved(x, x.expr() - change));
      continue;
    }
    const Variable m = slot(s, "sgd", x, "momentum");
    const Expr velocity = m.expr() * options.momentum - change;
    s.updates.push_back(update(m, velocity));
    s.updates.push_back(moved(x, x.expr() + (options.nesterov ? velocity * options.momentum - change : velocity)));
  }
  return s;
}

Optimizer rmsprop(const Expr& loss, std::span<const Variable> variables, const RmspropOptions& options) {
  Optimizer s = start("rmsprop", loss, variables, options.learning_rate);
  const Expr& lr = s.learning_rate;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Expr& g = s.gradients[i];
    const Variable a = slot(s, "rmsprop", variables[i], "a");
    const Expr new_a = a.expr() * options.rho + square(g) * (1 - options.rho);
    s.updates.push_back(update(a, new_a));
    s.updates.push_back(moved(variables[i], variables[i].expr() - lr * g / (sqrt(new_a) + epsilon())));
  }
  return s;
}

Optimizer adam(const Expr& loss, std::span<const Variable> variables, const AdamOptions& options) {
  Optimizer s = start("adam", loss, variables, options.learning_rate);
  const Expr t = cast(s.weights[0], loss.dtype()) + 1.0;
  const Expr lr_t = s.learning_rate.expr() * sqrt(1.0 - pow(scalar_like(options.beta_2, t), t)) /
                    (1.0 - pow(scalar_like(options.beta_1, t), t));
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Expr& g = s.gradients[i];
    const Variable m = slot(s, "adam", variables[i], "m"), v = slot(s, "adam", variables[i], "v");
    const Expr new_m = m.expr() * options.beta_1 + g * (1 - options.beta_1);
    const Expr new_v = v.expr() * options.beta_2 + square(g) * (1 - options.beta_2);
    s.updates.push_back(update(m, new_m));
    s.updates.push_back(update(v, new_v));
    s.updates.push_back(moved(variables[i], variables[i].expr() - lr_t * new_m / (sqrt(new_v) + epsilon())));
  }
  return s;
}

Optimizer adadelta(const Expr& loss, std::span<const Variable> variables, const AdadeltaOptions& options) {
  Optimizer s = start("adadelta", loss, variables, options.learning_rate);
  const Expr& lr = s.learning_rate;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Expr& g = s.gradients[i];
    const Variable a = slot(s, "adadelta", variables[i], "a"), d = slot(s, "adadelta", variables[i], "d");
    const Expr new_a = a.expr() * options.rho + square(g) * (1 - options.rho);
    const Expr change = g * sqrt(d.expr() + epsilon()) / sqrt(new_a + epsilon());
    const Expr new_d = d.expr() * options.rho + square(change) * (1 - options.rho);
    s.updates.push_back(update(a, new_a));
    s.updates.push_back(update(d, new_d));
    s.updates.push_back(moved(variables[i], variables[i].expr() - lr * change));
  }
  return s;
}

}  // namespace syncline
