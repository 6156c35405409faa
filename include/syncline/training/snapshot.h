// Converts between a checkpoint and a training's variables and Fit.
//
// Only the training thread calls these functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/checkpoint/checkpoint.h"
#include "syncline/checkpoint/shards.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/fit.h"

#pragma GCC visibility push(default)
namespace syncline::training {

struct NamedLayer {
  std::string name;
  std::vector<Variable> weights;  // in Keras's order: kernel, bias
};

// The variables of a training, as a checkpoint lists them.
struct SavedModel {
  std::string name;  // the user's name for it, "cnn"; may be empty
  std::vector<NamedLayer> layers;
  std::vector<Variable> optimizer;      // Optimizer::weights
  std::vector<Variable> accumulated{};  // AccumulatingOptimizer::accumulated, saved after `optimizer`
};

// Every variable, layers first.
std::vector<Variable> variables_of(const SavedModel& model);

// The checkpoint has the values that `shard` holds ({} is all, std::nullopt none), and absent_array for the others. The
// arrays share the variables' bytes and are valid until the next step. If the model is divided, values are gathered,
// and the checkpoint has also each rank's part of accumulated sums. That takes collectives, so all ranks must call.
// Throws std::bad_alloc on every rank if one of them lacks the memory for the values of its shard, and ValueError for a
// shard out of range. `communicator` is null for one process, and if the model is not divided.
io::Checkpoint snapshot(const SavedModel& model, const Fit& fit, comm::Communicator* communicator,
                        std::optional<io::Shard> shard);
// True if ranks now hold parts of a variable; accumulated sums are divided only between two updates.
bool is_divided(const SavedModel& model);

// Moves the ranks' parts out of the checkpoint, which then matches spec_of(model).
std::vector<io::Weight> take_parts(io::Checkpoint& checkpoint, const SavedModel& model);
// Call after restore, which gives rank 0 the sums: if there are as many ranks as before, each rank gets its part again.
// Collective; rank 0's `parts` apply.
void restore_parts(const std::vector<io::Weight>& parts, const SavedModel& model, comm::Communicator& communicator);

// The names, dtypes and shapes of the snapshot.
io::ModelSpec spec_of(const SavedModel& model);

// Sets variables, counters and the states of the callbacks found in the notes. `values` are those of variables_of, in
// that order. Throws IoError that contains `path` if the checkpoint is of another training; only callbacks may have
// changed then.
void restore(const std::string& path, const io::Checkpoint& checkpoint, const std::vector<Array>& values,
             const SavedModel& model, Fit& fit);

}  // namespace syncline::training
#pragma GCC visibility pop
