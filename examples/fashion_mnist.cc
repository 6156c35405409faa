// Trains a network on Fashion-MNIST. Alone: fashion_mnist. On several ranks: mpirun -n 4 fashion_mnist. The result is
// the same up to rounding, and the same bits on every rank.
//
// Exit codes: docs/exit_codes.md, and 2 for wrong arguments.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>

#include "comm/ending.h"
#include "comm/launch.h"
#include "comm/make_communicator.h"
#include "examples/options.h"
#include "examples/training.h"
#include "ops/kernels/parallel.h"
#include "runtime/config.h"
#include "runtime/data_parallel.h"
#include "runtime/keras_json.h"
#include "runtime/session.h"

namespace {
using namespace syncline;
using examples::Options;
using examples::Training;

void complain(const std::string& what) {
  fmt::print(stderr, "fashion_mnist: {}\n", what);
  std::fflush(stderr);
}

// Runs what every rank does for itself and what may fail on some of them only. True if it succeeded on all; otherwise
// the lowest rank on which it failed says why.
bool succeeds_on_all(comm::Communicator& wire, const std::function<void()>& action) {
  std::string error;
  try {
    action();
  } catch (const std::exception& e) {
    error = e.what();
  }
  std::int32_t first = error.empty() ? wire.size() : wire.rank();
  wire.wait(wire.all_reduce({.names = comm::remember_names("whether all ranks have read their files")}, &first, 1,
                            DType::kInt32, comm::Reduce::kMin));
  if (first == wire.rank()) complain(error);
  return first == wire.size();
}

// A rank that finds another checkpoint than the first one, or none, would go on from another place.
void require_equal_steps(comm::Communicator& wire, std::int64_t steps) {
  std::int64_t range[] = {steps, -steps};
  wire.wait(wire.all_reduce({.names = comm::remember_names("the step to go on from")}, range, 2, DType::kInt64,
                            comm::Reduce::kMin));
  if (range[0] != -range[1])
    fail<IoError>("--resume: the checkpoints that the ranks read end after different steps, ", range[0], " to ",
                  -range[1], "; all ranks must see the same file");
}

int train(const Options& options, comm::Communicator& wire) {
  Session session(options.seed);
  SessionScope scope(session);
  set_floatx(parse_dtype(options.floatx));
  if (wire.size() > 1) session.distribute(make_data_parallel(wire));
  const bool first = wire.rank() == 0;
  if (first)
    fmt::print("model {}, optimizer {}, batch {}, ranks {}, threads a rank {}\n", options.model, options.optimizer,
               options.batch, wire.size(), kernels::thread_count());
  std::unique_ptr<Training> training;
  if (!succeeds_on_all(wire, [&] { training = std::make_unique<Training>(options, wire.rank()); })) return 1;
  training->build();
  if (!succeeds_on_all(wire, [&] { training->resume(); })) return 1;
  require_equal_steps(wire, training->steps());
  training->run();
  const Training::Score score = training->evaluate();
  if (options.digest) fmt::print("rank {} digest {:016x}\n", wire.rank(), training->digest());
  if (first) fmt::print("test loss {:.4f}  test accuracy {:.4f}\n", score.loss, score.accuracy);
  if (first && !options.checkpoint.empty()) fmt::print("checkpoint {}\n", options.checkpoint);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<comm::Communicator> wire;
  Options options;
  try {
    const bool quiet = comm::read_launch_environment().rank != 0;
    if (const int code = examples::parse_options(argc, argv, quiet, options); code >= 0) return code;
    if (options.threads > 0) kernels::set_thread_count(options.threads);
    comm::Settings settings = keras_json().comm;
    if (options.verbose) settings.verbose = true;
    wire = comm::make_communicator(comm::options_for_threads(kernels::thread_count(), settings));
  } catch (const std::exception& e) {
    complain(e.what());
    return 1;
  }
  try {
    return train(options, *wire);
  } catch (const std::exception& e) {
    comm::end_job(*wire, "fashion_mnist", e);
  }
}
