// Keras's configuration and the random functions under their Keras names, for the calling thread's session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "syncline/array.h"
#include "syncline/backend/random.h"
#include "syncline/backend/variable.h"

#pragma GCC visibility push(default)
namespace syncline {

std::string backend();  // "syncline"

// Initial values: keras.json and the environment (syncline/distributed/keras_json.h). The setters throw ValueError.
DType floatx();                          // float32 unless set
void set_floatx(std::string_view name);  // float16, float32 or float64
void set_floatx(DType dtype);
double epsilon();                 // 1e-7 unless set
void set_epsilon(double e);       // finite, not negative
std::string image_data_format();  // "channels_last" unless set
void set_image_data_format(const std::string& data_format);
// image_data_format under Keras 1's names: "tf" for channels_last, "th" for channels_first.
std::string image_dim_ordering();
void set_image_dim_ordering(const std::string& dim_ordering);

Array cast_to_floatx(const Array& x);
Array cast_to_floatx(double x);
Expr cast_to_floatx(const Expr& x);

// Numbers for names of layers and the like: 1, 2, 3, ... for each prefix.
int get_uid(const std::string& prefix = "");
void reset_uids();
// Forgets names, uids, the learning phase and the count of random operations.
void clear_session();

using Seed = std::optional<std::uint64_t>;  // default: derived from the session's seed
Expr random_uniform(const Dims& shape, const UniformOptions& options = {}, Seed seed = {});
Expr random_normal(const Dims& shape, const NormalOptions& options = {}, Seed seed = {});
Expr truncated_normal(const Dims& shape, const NormalOptions& options = {}, Seed seed = {});
Expr random_binomial(const Dims& shape, const BinomialOptions& options = {}, Seed seed = {});
Variable random_uniform_variable(Shape shape, double low, double high, VariableOptions options = {}, Seed seed = {});
Variable random_normal_variable(Shape shape, double mean, double scale, VariableOptions options = {}, Seed seed = {});
// x with a fraction `level` of its elements set to 0 and the others scaled by 1 / (1 - level).
Expr dropout(const Expr& x, double level, const std::optional<Dims>& noise_shape = {}, Seed seed = {});

// Keras's flag that the program initializes variables itself. Kept for compatibility and ignored: a variable always has
// its initial value from the start.
void manual_variable_initialization(bool value);
bool manual_variable_initialization();

}  // namespace syncline
#pragma GCC visibility pop
