// straggler HOW [MS]: a training whose rank 1 is slower than the others by MS milliseconds a step, in its "backward"
// pass or "between" steps, as HOW says. With "killed", rank 1 kills itself in the middle, after its first steps are in
// the file; with "fails", it throws. trace_test.cc checks the timeline.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ops/graph/op.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"

namespace syncline {
namespace {

using namespace std::chrono_literals;

constexpr int kSteps = 12;
std::chrono::milliseconds nap{0};
bool sleepy = false;  // this rank naps in its backward pass

// The identity; its gradient sleeps for `nap`.
struct Nap {
  static constexpr std::string_view kName = "nap";
  struct Attrs {
    bool now = false;
  };
  static constexpr auto fields = std::tuple{field("now", &Attrs::now)};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_linear(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    if (a.now && sleepy) std::this_thread::sleep_for(nap);
    std::memcpy(k.out[0], k.in[0], static_cast<std::size_t>(k.out_shape().size()) * size_of(k.out_dtype()));
  }
  static std::vector<Expr> grad(const Attrs&, const Expr&, const Expr& dy) { return {apply<Nap>({dy}, {true})}; }
};
SYNCLINE_REGISTER_OP(Nap)

// Returns when rank 1's file has this many steps.
void wait_for_file(int steps) {
  const std::string path = std::string(std::getenv("SYNCLINE_TRACE")) + "/rank1.json";
  for (int i = 0; i < 200; ++i, std::this_thread::sleep_for(50ms)) {
    std::ifstream file(path);
    int found = 0;
    for (std::string line; std::getline(file, line);)
      found += line.find("\"cat\":\"step\"") != std::string::npos ? 1 : 0;
    if (found >= steps) return;
  }
  throw std::runtime_error("the timeline is not written");
}

// Two layers; the nap is between their gradients. Each gradient has its own bucket.
void train(const std::string& how, int rank) {
  sleepy = how == "backward" && rank == 1;
  const Expr x = placeholder({.shape = {kUnknown, 64}, .dtype = DType::kFloat32, .name = "x"});
  const std::vector<Variable> weights{variable(Array(DType::kFloat32, {64, 512}), {.name = "first/kernel"}),
                                      variable(Array(DType::kFloat32, {512, 700}), {.name = "second/kernel"})};
  const Expr hidden = apply<Nap>({dot(x, weights[0])});
  const Expr loss = mean(square(dot(hidden, weights[1]) - 1.0));
  Function step({x}, {loss}, sgd(loss, weights).updates, "train");
  for (int i = 0; i < kSteps; ++i) {
    if (how == "between" && rank == 1) std::this_thread::sleep_for(nap);
    if (i == kSteps / 2 && rank == 1) {
      if (how == "killed") wait_for_file(i), std::raise(SIGKILL);
      if (how == "fails") throw std::runtime_error("the data set is gone");
    }
    step({Array(DType::kFloat32, {8, 64})});
  }
}

int run(const std::string& how) {
  const auto communicator = comm::make_communicator({.worker = {.wait_limit = 20s}});
  Session session(1);
  SessionScope scope(session);
  if (communicator->size() > 1) session.distribute(make_data_parallel(*communicator));
  try {
    train(how, communicator->rank());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", communicator->rank(), error.what());
    communicator->abort_job(7);
  }
  session.undistribute();
  return 0;
}

}  // namespace
}  // namespace syncline

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2) syncline::nap = std::chrono::milliseconds(std::atoi(argv[2]));
  return syncline::run(argv[1]);
}
