// Training on labelled images, as a program of the C++ backend: the graph of a step and of an evaluation, where batches
// come from, and what a checkpoint is to hold. The rest is runtime/training.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "examples/models.h"
#include "examples/options.h"
#include "syncline/backend/function.h"
#include "syncline/data/dataset.h"
#include "syncline/distributed/communicator.h"
#include "syncline/training/fit.h"
#include "syncline/training/job.h"
#include "syncline/training/optimizers.h"
#include "syncline/training/resume.h"

namespace syncline::examples {

struct Data {
  io::LabeledImages train, test;
};

// Throws DisagreementError if ranks were given different numbers that no step would show. All ranks call it.
void require_equal_options(const Options& options, comm::Communicator& wire);

// Throws IoError.
Data read_data(const Options& options);

// Where checkpoints go, the same on every rank. A single file is gone on from in a folder named like it without ".h5".
// All ranks call both.
std::string checkpoint_folder(const Options& options, comm::Communicator& wire);
std::unique_ptr<training::FoundCheckpoint> find_checkpoint(const Options& options, const std::string& folder,
                                                           comm::Communicator& wire);

class Training {
 public:
  // Builds the graph; all ranks must do so. An empty folder: nothing is saved. What is pointed to outlives this.
  Training(const Options& options, Data data, const std::string& folder, comm::Communicator& wire,
           training::Requests* requests);
  Training(const Training&) = delete;  // its parts point at each other
  Training& operator=(const Training&) = delete;

  void resume(training::FoundCheckpoint& found);
  training::Ended run() { return fit_->run(); }
  training::Logs evaluate();
  const io::TrainingState& state() const { return fit_->counts(); }
  // Of the bytes of all variables, in order.
  std::uint64_t digest() const;

 private:
  void build();
  // The epochs are evaluated for those who look at the test set, or write.
  bool watched() const;
  void add_callbacks(const std::string& folder, comm::Communicator& wire, training::Requests* requests);
  training::Batches train_batches() const;
  training::Batches test_batches() const;

  Options options_;
  Data data_;
  Model model_;
  Optimizer optimizer_;
  std::unique_ptr<Function> step_, score_;
  training::SavedModel saved_;
  std::vector<std::unique_ptr<training::Callback>> callbacks_;
  std::unique_ptr<training::Fit> fit_;
};

}  // namespace syncline::examples
