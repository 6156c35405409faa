// What a checkpoint of a training holds, taken from variables and a Fit, and put back.
//
// One thread calls them, the one that trains.
#pragma once

#include <string>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/checkpoint/checkpoint.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/fit.h"

namespace syncline::training {

struct NamedLayer {
  std::string name;
  std::vector<Variable> weights;  // in Keras's order: kernel, bias
};

// The variables of a training, as a checkpoint lists them.
struct SavedModel {
  std::string name;  // what the user calls it, "cnn"; may be empty
  std::vector<NamedLayer> layers;
  std::vector<Variable> optimizer;      // Optimizer::weights
  std::vector<Variable> accumulated{};  // AccumulatingOptimizer::accumulated, saved behind those
};

// Every variable, layers first.
std::vector<Variable> variables_of(const SavedModel& model);

// The arrays share the variables' bytes: good until the next step. Where the model is divided, the ranks that `keep`
// the checkpoint have each rank's part in it, and the sum in the variable's place: that takes collectives, so all ranks
// must ask, and one keeps memory for as many copies as there are ranks. Throws std::bad_alloc on every rank if one of
// them has not got it. `wire` is null for one process, and where the model is not divided.
io::Checkpoint snapshot(const SavedModel& model, const Fit& fit, comm::Communicator* wire, bool keep);
// Whether ranks hold parts of a variable just now: of accumulated sums only between two updates.
bool is_divided(const SavedModel& model);

// The parts, out of the checkpoint: what is left is as spec_of says.
std::vector<io::Weight> take_parts(io::Checkpoint& checkpoint, const SavedModel& model);
// Behind restore, which gives rank 0 the sums: where there are as many ranks as before, each gets its part again. All
// ranks must ask; rank 0's `parts` count.
void restore_parts(const std::vector<io::Weight>& parts, const SavedModel& model, comm::Communicator& wire);

// The names, dtypes and shapes of what snapshot would hold.
io::ModelSpec spec_of(const SavedModel& model);

// Sets variables, counters and the states of the callbacks that the notes know. `values` are those of variables_of, in
// that order. Throws IoError, with `path` in it, if the fit is of another training, before it changes any but
// callbacks.
void restore(const std::string& path, const io::Checkpoint& checkpoint, const std::vector<Array>& values,
             const SavedModel& model, Fit& fit);

}  // namespace syncline::training
