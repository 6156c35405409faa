#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/variable.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

// The results of `get` before and after each of the case's values is set.
template <class T, class Get, class Set>
Answer set_each(const Call& call, Get get, Set set) {
  std::vector<Expr> seen{Answer::as_tensor(get())};
  for (const T& value : call.get<std::vector<T>>("values")) {
    set(value);
    seen.push_back(Answer::as_tensor(get()));
  }
  return seen;
}

Answer set_each_floatx(const Call& call) {
  return set_each<std::string>(
      call, [] { return std::string(name_of(floatx())); }, [](const std::string& value) { set_floatx(value); });
}

Answer uids(const Call& call, void (*forget)()) {
  std::vector<std::int32_t> seen;
  for (const auto& prefix : call.get<std::vector<nlohmann::json>>("prefixes")) {
    if (prefix.is_null()) forget();
    seen.push_back(prefix.is_null() ? 0 : get_uid(prefix.get<std::string>()));
  }
  return Array::from({static_cast<std::int64_t>(seen.size())}, seen);
}

}  // namespace

SYNCLINE_ORACLE_CALL(floatx) { return set_each_floatx(call); }
SYNCLINE_ORACLE_CALL(set_floatx) { return set_each_floatx(call); }
SYNCLINE_ORACLE_CALL(epsilon) { return set_each<double>(call, epsilon, set_epsilon); }
SYNCLINE_ORACLE_CALL(set_epsilon) { return set_each<double>(call, epsilon, set_epsilon); }
SYNCLINE_ORACLE_CALL(image_data_format) {
  return set_each<std::string>(call, image_data_format, set_image_data_format);
}
SYNCLINE_ORACLE_CALL(set_image_data_format) {
  return set_each<std::string>(call, image_data_format, set_image_data_format);
}
SYNCLINE_ORACLE_CALL(image_dim_ordering) {
  return set_each<std::string>(call, image_dim_ordering, set_image_data_format);
}
SYNCLINE_ORACLE_CALL(set_image_dim_ordering) {
  return set_each<std::string>(call, image_data_format, set_image_dim_ordering);
}
SYNCLINE_ORACLE_CALL(backend) { return Answer::as_tensor(backend()); }

SYNCLINE_ORACLE_CALL(cast_to_floatx) {
  set_floatx(call.get<DType>("floatx"));
  if (call.has("number")) return cast_to_floatx(call.get<double>("number"));
  if (call.has("tensor")) return cast_to_floatx(call.tensor(0));
  return cast_to_floatx(call.array(0));
}

SYNCLINE_ORACLE_CALL(get_uid) { return uids(call, reset_uids); }
SYNCLINE_ORACLE_CALL(reset_uids) { return uids(call, reset_uids); }
SYNCLINE_ORACLE_CALL(clear_session) { return uids(call, clear_session); }

SYNCLINE_ORACLE_CALL(gradients) {
  const Expr x = call.tensor(0), y = call.tensor(1);
  const std::string kind = call.get<std::string>("loss");
  Expr loss;
  if (kind == "square") loss = sum(square(x));
  if (kind == "elements") loss = square(x);
  if (kind == "product") loss = sum(x * y);
  if (kind == "unused") loss = sum(exp(x)) + 0.0 * sum(y);
  if (kind == "chain") loss = mean(tanh(dot(x, y)));
  if (kind == "twice") loss = sum(square(gradients(sum(x * x * x), {x})[0]));
  return gradients(loss, call.tensors());
}

SYNCLINE_ORACLE_CALL(function) {
  const Array &x = call.array(0), &y = call.array(1);
  const Expr a = placeholder({.shape = x.shape(), .dtype = x.dtype()});
  const Expr b = placeholder({.shape = y.shape(), .dtype = y.dtype()});
  const std::string kind = call.get<std::string>("kind");
  std::vector<Expr> results;
  auto keep = [&](const std::vector<Array>& outputs) {
    for (const Array& output : outputs) results.push_back(Answer::as_tensor(output.copy()));
  };
  if (kind == "none") results.push_back(Answer::as_tensor(static_cast<int>(Function({a, b}, {})({x, y}).size())));
  if (kind == "constant") keep(Function({}, {constant(2.0) * 3.0})({}));
  if (kind == "same") keep(Function({a, b}, {a + 1.0, a + 1.0, b + 1.0})({x, y}));
  if (kind == "outputs") {
    Function f({a, b}, {a + b, a * 2.0, sum(b)});
    keep(f({x, y}));
    keep(f({y, x}));
  }
  if (kind == "update") {
    const Variable n = variable(Array(x.dtype(), x.shape()));
    Function f({a, b}, {a - b}, {update_add(n, a)});
    keep(f({x, y}));
    keep(f({y, x}));
    keep({get_value(n)});
  }
  return results;
}

SYNCLINE_ORACLE_CALL(set_learning_phase) {
  std::vector<float> seen;
  for (const int value : call.list("values")) {
    set_learning_phase(value);
    seen.push_back(static_cast<float>(eval(in_train_phase(constant(1.0), constant(2.0))).item()));
  }
  return Array::from({static_cast<std::int64_t>(seen.size())}, seen);
}

SYNCLINE_ORACLE_CALL(learning_phase) {
  Function f({learning_phase()}, {in_train_phase(constant(1.0), constant(2.0))});
  std::vector<float> seen;
  for (const int value : call.list("values"))
    seen.push_back(static_cast<float>(f({Array::scalar(value != 0)})[0].item()));
  return Array::from({static_cast<std::int64_t>(seen.size())}, seen);
}

namespace {

TrainingPhase training_of(const Call& call) {
  if (call.has("phase")) set_learning_phase(call.get<int>("phase"));
  if (call.has(2)) return call.tensor(2);
  return call.has("training") ? TrainingPhase(call.get<int>("training")) : TrainingPhase();
}

// Cases with a third operand, even an absent one, pass functions as sides.
std::pair<TensorOrFunction, TensorOrFunction> sides_of(const Call& call) {
  const Expr x = call.tensor(0), alt = call.tensor(1);
  if (call.size() < 3) return {x, alt};
  return {[=] { return exp(x); }, [=] { return x * alt; }};
}

}  // namespace

SYNCLINE_ORACLE_CALL(in_train_phase) {
  const auto [x, alt] = sides_of(call);
  return in_train_phase(x, alt, training_of(call));
}

SYNCLINE_ORACLE_CALL(in_test_phase) {
  const auto [x, alt] = sides_of(call);
  return in_test_phase(x, alt, training_of(call));
}

}  // namespace syncline::testing
