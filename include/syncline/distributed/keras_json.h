// keras.json: Keras's file of defaults, in $KERAS_HOME or ~/.keras. Sessions begin with what it says; the environment
// (SYNCLINE_FLOATX, SYNCLINE_EPSILON, SYNCLINE_IMAGE_DATA_FORMAT and one for each option within "syncline") overrides
// it, and setters override both.
//
//   {"floatx": "float32", "epsilon": 1e-07, "backend": "tensorflow", "image_data_format": "channels_last",
//    "syncline": {"wait_limit": 60, "bucket": "25MiB", "check_steps": 100}}
//
// Every key may be absent, and keys that Keras does not know are left alone, but not those within "syncline", which
// docs/distribution_options.md lists. A file that is there and cannot be read as this is an error: IoError (not readable, no
// JSON) or ValueError (a key's value), naming file and place or key.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "syncline/config.h"
#include "syncline/distributed/settings.h"

namespace syncline {

struct KerasJson {
  Config config;
  std::string backend = "tensorflow";  // Keras's own choice of a backend, for its Python package
  comm::Settings comm;
  // See syncline/distributed/data_parallel.h.
  std::int64_t first_bucket = std::int64_t{1} << 20;
  std::int64_t later_buckets = std::int64_t{25} << 20;
  std::int64_t by_rows_from = std::int64_t{1} << 20;
  std::uint64_t check_steps = 100;
  std::string faults;  // SYNCLINE_FAULT, as parse_faults (runtime/placement/faults.h) takes it; "": none
};

// nullptr for a variable that is not set.
using Getenv = std::function<const char*(const char*)>;

// The file as the environment says, overridden by it. An absent file is written with Keras's defaults, so that there is
// something to edit; where that is not possible, nothing happens.
KerasJson load_keras_json(const Getenv& getenv);
// The same for this process, read when it is first asked for. Safe to call from several threads.
const KerasJson& keras_json();

// Checks of values, for setters too. They throw ValueError that begins with `what`.
DType checked_floatx(std::string_view what, std::string_view name);
double checked_epsilon(std::string_view what, double epsilon);
std::string checked_data_format(std::string_view what, std::string_view data_format);

}  // namespace syncline
