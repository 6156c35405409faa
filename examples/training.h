// Training on labelled images, as a program of the C++ backend: the graphs of a step and of an evaluation, the source
// of batches, and the contents of a checkpoint. runtime/training does the rest.
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

// Throws DisagreementError if ranks have different values of options that the plans of a step do not show, such as
// --epochs. Collective.
void require_equal_options(const Options& options, comm::Communicator& communicator);

// Throws IoError.
Data read_data(const Options& options);

// The checkpoint folder of rank 0, on every rank: --checkpoint, or for an existing file NAME.h5 the folder NAME.
// find_checkpoint looks into the folder, then at the file. Null: there is none. Both are collective.
std::string checkpoint_folder(const Options& options, comm::Communicator& communicator);
std::unique_ptr<training::FoundCheckpoint> find_checkpoint(const Options& options, const std::string& folder,
                                                           comm::Communicator& communicator);

class Training {
 public:
  // Builds the graph; collective. An empty folder: nothing is saved. `communicator` and `requests` must outlive this
  // object.
  Training(const Options& options, Data data, const std::string& folder, comm::Communicator& communicator,
           training::Requests* requests);
  Training(const Training&) = delete;  // its parts point at each other
  Training& operator=(const Training&) = delete;

  void resume(training::FoundCheckpoint& found);
  training::Ended run() { return fit_->run(); }
  training::Logs evaluate();
  const io::TrainingState& state() const { return fit_->counts(); }
  // A digest of the bytes of all variables, in order.
  std::uint64_t digest() const;

 private:
  void build();
  // True if a callback needs an evaluation after each epoch.
  bool watched() const;
  void add_callbacks(const std::string& folder, comm::Communicator& communicator, training::Requests* requests);
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
