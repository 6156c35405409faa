// keras.json: Keras's file of defaults, in $KERAS_HOME or ~/.keras. It initializes sessions. The environment
// (SYNCLINE_FLOATX, SYNCLINE_EPSILON, SYNCLINE_IMAGE_DATA_FORMAT and one variable for each option within "syncline")
// overrides the file, and setters override both.
//
//   {"floatx": "float32", "epsilon": 1e-07, "backend": "tensorflow", "image_data_format": "channels_last",
//    "syncline": {"wait_limit": 60, "bucket": "25MiB", "check_steps": 100}}
//
// Every key is optional. Unknown keys are ignored, except within "syncline", whose keys docs/distribution_options.md
// lists. An invalid file throws IoError (not readable, no JSON) or ValueError (a key's value), which names the file and
// the place or key.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "syncline/config.h"
#include "syncline/distributed/settings.h"

#pragma GCC visibility push(default)
namespace syncline {

// Where the ranks keep the state of an optimizer: variables that steps read and update by rows only, such as moments.
enum class OptimizerState : std::uint8_t {
  kAuto,        // as kSplit within a node; each node has all of it
  kSplit,       // each rank has some rows, so a node needs memory for its ranks' rows only
  kReplicated,  // each rank has all of it, and of the weights
};

struct KerasJson {
  Config config;
  std::string backend = "tensorflow";  // Keras's own backend choice, for its Python package
  comm::Settings comm;
  // See syncline/distributed/data_parallel.h.
  std::int64_t first_bucket = std::int64_t{1} << 20;
  std::int64_t later_buckets = std::int64_t{25} << 20;
  std::int64_t by_rows_from = std::int64_t{1} << 20;
  std::int64_t share_from = std::int64_t{64} << 10;
  OptimizerState optimizer_state = OptimizerState::kAuto;
  std::uint64_t check_steps = 100;
  static constexpr int kMostParts = 1024;
  int parts = 0;
  std::string simd = "best";  // or common, avx2, baseline (ops/kernels/instruction_sets.h)
  std::string faults;         // SYNCLINE_FAULT, as parse_faults (runtime/placement/faults.h) takes it; "": none
};

// Returns nullptr for a variable that is not set.
using Getenv = std::function<const char*(const char*)>;

// Reads the file that the environment names, overridden by the environment. If the file is missing, writes one with
// Keras's defaults for the user to edit; failing to write it is not an error.
KerasJson load_keras_json(const Getenv& getenv);
// load_keras_json for this process, read at the first call. Safe to call from several threads.
const KerasJson& keras_json();
// keras_json's options of a communicator, for ranks of thread_count() compute threads each.
comm::CommOptions comm_options();

// Validate values, for setters too. They throw ValueError whose text begins with `what`.
DType checked_floatx(std::string_view what, std::string_view name);
double checked_epsilon(std::string_view what, double epsilon);
std::string checked_data_format(std::string_view what, std::string_view data_format);

}  // namespace syncline
#pragma GCC visibility pop
