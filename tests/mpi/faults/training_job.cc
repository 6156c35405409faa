// A small training that SYNCLINE_FAULT damages, or that fails by itself in the way that the argument names. It exits
// with the code of the failure; CMakeLists.txt has the expected codes and texts.
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"

namespace syncline {
namespace {

constexpr std::int64_t kWidth = 8, kRows = 12;

// Values from -1 to 1, the same on every rank.
Array values(Shape shape, int seed) {
  Array array(DType::kFloat32, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i)
    array.data<float>()[i] = static_cast<float>((i * 37 + seed * 101) % 201 - 100) / 100.f;
  return array;
}

// The effect of loading a library that was built with -ffast-math.
#ifdef __SSE__
void flush_denormals() { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
void flush_denormals() {}
#endif

void train(const std::string& how, int steps, comm::Communicator& communicator) {
  Session session(5);
  SessionScope scope(session);
  // Each gradient has its own bucket.
  session.distribute(make_data_parallel(communicator, {.first_bucket = 1, .later_buckets = 1}));
  const bool odd = communicator.rank() == communicator.size() - 1;
  if (how == "seed" && odd) session.set_seed(7);
  if (how == "rounding" && odd) std::fesetround(FE_UPWARD);
  if (how == "denormals" && odd) flush_denormals();
  const Expr x = placeholder({.shape = {kUnknown, kWidth}, .name = "x"});
  const Variable first = variable(values({kWidth, kWidth}, 1), {.name = "dense_1/kernel"});
  const Variable second = variable(values({kWidth, kWidth}, 2), {.name = "dense_2/kernel"});
  const Expr hidden = dropout(tanh(dot(x, first)), 0.1, {}, how == "dropout" && odd ? Seed(7) : Seed(1));
  const Expr loss = mean(square(dot(hidden, second) - x), {}, false);
  const std::vector<Variable> variables{first, second};
  Function step({x}, {loss}, sgd(loss, variables, {.learning_rate = 0.05, .momentum = 0.5}).updates, "train");
  double last = 0;
  for (int i = 0; i < steps; ++i) last = step({values({kRows, kWidth}, i)})[0].item();
  communicator.barrier({.plan = comm::kEndOfProgram});
  if (communicator.rank() == 0) std::printf("done, loss %.3f\n", last);
}

// A rank on an older processor.
void leave_out_instructions() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && rank[0] == '1') setenv("SYNCLINE_SIMD", "baseline", 1);
}

int run(const std::string& how, int steps) {
  if (how == "baseline") leave_out_instructions();
  const auto options = [] {
    comm::Settings settings = keras_json().comm;
    if (!settings.wait_limit) settings.wait_limit = 8;  // a busy machine may need some seconds to start
    return comm::options_for_threads(1, settings);
  };
  return comm::run_job("training_job", options,
                       [&](comm::Communicator& communicator) { train(how, steps, communicator); });
}

}  // namespace
}  // namespace syncline

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return syncline::run(argv[1], std::atoi(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_job: %s\n", error.what());
    return 1;
  }
}
