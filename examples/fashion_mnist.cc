// Trains a network on Fashion-MNIST, on one rank (fashion_mnist) or on several (mpirun -n 4 fashion_mnist). The results
// agree up to rounding, and with --parts are equal; all ranks of a job have the same bits.
//
// Exit codes: docs/exit_codes.md, and 2 for wrong arguments.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "examples/options.h"
#include "examples/training.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blas_memory.h"
#include "syncline/backend/config.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/ending.h"
#include "syncline/distributed/exit_codes.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/launch.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"
#include "syncline/training/signals.h"

namespace {
using namespace syncline;
using examples::Options;
using examples::Training;

void complain(const std::string& what) {
  fmt::print(stderr, "fashion_mnist: {}\n", what);
  std::fflush(stderr);
}

// Runs an action that may fail on some or all ranks. True if it succeeds on all; otherwise the lowest failing rank
// prints its error. Collective.
bool succeeds_on_all(comm::Communicator& communicator, const std::function<void()>& action) {
  std::string error;
  try {
    action();
  } catch (const std::exception& e) {
    error = e.what();
  }
  std::int32_t first = error.empty() ? communicator.size() : communicator.rank();
  communicator.wait(communicator.all_reduce({.names = comm::remember_names("whether all ranks have read their files")},
                                            &first, 1, DType::kInt32, comm::Reduce::kMin));
  if (first == communicator.rank()) complain(error);
  return first == communicator.size();
}

int train(const Options& options, comm::Communicator& communicator, training::Requests* requests) {
  Session session(options.seed);
  SessionScope scope(session);
  set_floatx(parse_dtype(options.floatx));
  if (communicator.size() > 1 || options.parts > 0)
    session.distribute(make_data_parallel(communicator, {.parts = options.parts}));
  examples::require_equal_options(options, communicator);
  const bool first = communicator.rank() == 0;
  if (first)
    fmt::print("model {}, optimizer {}, batch {}, ranks {}, threads per rank {}\n", options.model, options.optimizer,
               options.batch, communicator.size(), thread_count());
  examples::Data data;
  if (!succeeds_on_all(communicator, [&] { data = examples::read_data(options); })) return 1;
  if (const std::int64_t rows = data.train.images.shape()[0]; first && options.batch > rows)
    fmt::print("the batch of {} is larger than the training set of {} rows: each step takes all rows\n", options.batch,
               rows);
  const std::string folder = checkpoint_folder(options, communicator);
  std::unique_ptr<training::FoundCheckpoint> found;
  if (options.resume && !succeeds_on_all(communicator, [&] { found = find_checkpoint(options, folder, communicator); }))
    return 1;
  Training training(options, std::move(data), folder, communicator, requests);
  if (found && !succeeds_on_all(communicator, [&] { training.resume(*found); })) return 1;
  if (first && found)
    fmt::print("resumed {} at epoch {}, step {}\n", found->path(), found->state().epoch + 1, found->state().step);
  if (first && !found && options.resume)
    fmt::print("no checkpoint in {}: training starts from the beginning\n", folder);
  if (training.run() == training::Ended::kPaused) {
    if (first) fmt::print("stopped after step {}; --resume continues\n", training.state().global_step);
    return kExitSaved;
  }
  const training::Logs score = training.evaluate();
  if (options.digest) fmt::print("rank {} digest {:016x}\n", communicator.rank(), training.digest());
  if (first) fmt::print("test loss {:.4f}  test accuracy {:.4f}\n", *score.find("loss"), *score.find("accuracy"));
  if (first && !folder.empty()) fmt::print("checkpoint {}/latest\n", folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<training::Signals> signals;  // empty without a checkpoint folder: signals keep their default action
  std::unique_ptr<comm::Communicator> communicator;
  Options options;
  try {
    const bool quiet = comm::read_launch_environment().rank != 0;
    if (const int code = examples::parse_options(argc, argv, quiet, options); code >= 0) {
      // Only rank 0 prints the error. mpirun kills it when another rank fails, so the other ranks end later.
      if (quiet && code > 0) std::this_thread::sleep_for(std::chrono::seconds(3));
      return code;
    }
    if (!options.checkpoint.empty()) signals.emplace();
    if (options.threads > 0) set_thread_count(options.threads);
    if (const std::string lacking = kernels::lacking_blas_memory(); !lacking.empty()) {
      complain(lacking);
      std::_Exit(1);  // a normal exit waits for OpenBLAS's threads, which wait for memory
    }
    comm::Settings settings = keras_json().comm;
    if (options.verbose) settings.verbose = true;
    communicator = comm::make_communicator(comm::options_for_threads(thread_count(), settings));
  } catch (const std::exception& e) {
    complain(e.what());
    return 1;
  }
  try {
    return train(options, *communicator, signals ? &*signals : nullptr);
  } catch (const std::exception& e) {
    signals.reset();
    comm::end_job(*communicator, "fashion_mnist", e);
  }
}
