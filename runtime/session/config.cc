#include "syncline/backend/config.h"

#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/session.h"

namespace syncline {
namespace {

RandomKey key(Seed seed) { return Session::current().next_random_key(seed); }

// Random values have the dtype floatx by default.
DType dtype_of(const VariableOptions& options) { return options.dtype.value_or(floatx()); }

}  // namespace

std::string backend() { return "syncline"; }

DType floatx() { return Session::current().config().floatx; }
void set_floatx(std::string_view name) { Session::current().config().floatx = checked_floatx("set_floatx", name); }
void set_floatx(DType dtype) { set_floatx(name_of(dtype)); }

double epsilon() { return Session::current().config().epsilon; }
void set_epsilon(double e) { Session::current().config().epsilon = checked_epsilon("set_epsilon", e); }

std::string image_data_format() { return Session::current().config().image_data_format; }
void set_image_data_format(const std::string& data_format) {
  Session::current().config().image_data_format = checked_data_format("set_image_data_format", data_format);
}

std::string image_dim_ordering() { return image_data_format() == "channels_first" ? "th" : "tf"; }
void set_image_dim_ordering(const std::string& dim_ordering) {
  if (dim_ordering != "tf" && dim_ordering != "th")
    fail<ValueError>("set_image_dim_ordering: unknown dim_ordering '", dim_ordering, "'; give tf or th");
  set_image_data_format(dim_ordering == "th" ? "channels_first" : "channels_last");
}

Array cast_to_floatx(const Array& x) { return x.cast(floatx()); }
Array cast_to_floatx(double x) { return Array::scalar(x).cast(floatx()); }
Expr cast_to_floatx(const Expr& x) { return cast(x, floatx()); }

int get_uid(const std::string& prefix) { return Session::current().uid(prefix); }
void reset_uids() { Session::current().reset_uids(); }
void clear_session() { Session::current().clear(); }

Expr random_uniform(const Dims& shape, const UniformOptions& options, Seed seed) {
  return random_uniform(shape, key(seed), options);
}
Expr random_normal(const Dims& shape, const NormalOptions& options, Seed seed) {
  return random_normal(shape, key(seed), options);
}
Expr truncated_normal(const Dims& shape, const NormalOptions& options, Seed seed) {
  return truncated_normal(shape, key(seed), options);
}
Expr random_binomial(const Dims& shape, const BinomialOptions& options, Seed seed) {
  return random_binomial(shape, key(seed), options);
}

Variable random_uniform_variable(Shape shape, double low, double high, VariableOptions options, Seed seed) {
  const UniformOptions uniform{.minval = low, .maxval = high, .dtype = dtype_of(options)};
  return variable(random_uniform(shape, uniform, seed), std::move(options));
}
Variable random_normal_variable(Shape shape, double mean, double scale, VariableOptions options, Seed seed) {
  const NormalOptions normal{.mean = mean, .stddev = scale, .dtype = dtype_of(options)};
  return variable(random_normal(shape, normal, seed), std::move(options));
}

Expr dropout(const Expr& x, double level, const std::optional<Dims>& noise_shape, Seed seed) {
  return dropout(x, level, key(seed), noise_shape);
}

void manual_variable_initialization(bool value) { Session::current().set_manual_initialization(value); }
bool manual_variable_initialization() { return Session::current().manual_initialization(); }

}  // namespace syncline
