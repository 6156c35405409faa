// A job whose last rank differs from the others in the way that the argument names. A rank that gets an error prints it
// and ends the job with code 3; a rank without an error exits with 0. different_graphs_test.cc checks this.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"

namespace syncline {
namespace {

constexpr int kTold = 3;

Variable vector_variable(const std::string& name, std::int64_t size) {
  return variable(Array(DType::kFloat32, {size}), {.name = name});
}

void call(Function& f, std::int64_t rows) {
  for (int i = 0; i < 3; ++i) f({Array(DType::kFloat32, {rows, 4})});
}

// `odd`: this is the last rank.
void run(const std::string& how, bool odd) {
  const Expr x = placeholder({.shape = {kUnknown, 4}, .name = "x"});
  const Variable a = vector_variable("a", 4), b = vector_variable("b", odd && how == "shape" ? 1 : 4);
  const Expr y = odd && how == "operations" ? tanh(exp(x + a)) : exp(tanh(x + a));
  const Expr rows = sum(y * b, {0});
  std::vector<Update> updates{update_add(a, rows)};
  if (how != "shape" && !(odd && how == "missing")) updates.push_back(update_add(b, rows * 2.0));
  if (odd && how == "updates") std::swap(updates[0], updates[1]);
  Function f({x}, {rows}, updates, odd && how == "name" ? "g" : "f");
  if (how == "none" || how == "feeds") return call(f, odd && how == "feeds" ? 7 : 6);
  if (how != "calls") return call(f, 6);
  Function g({x}, {rows}, {update_sub(a, rows)}, "g");  // all ranks call f and g before the last rank differs
  call(f, 6);
  call(g, 6);
  odd ? call(f, 6) : call(g, 6);
}

int run_rank(const std::string& how, comm::Communicator& communicator) {
  Session session(1);
  SessionScope scope(session);
  session.distribute(make_data_parallel(communicator));
  try {
    run(how, communicator.rank() == communicator.size() - 1);
  } catch (const std::exception& error) {
    std::printf("rank %d was told: %s\n", communicator.rank(), error.what());
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // so that every rank prints before the job ends
    communicator.abort_job(kTold);
  }
  return 0;
}

}  // namespace
}  // namespace syncline

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto communicator = syncline::comm::make_communicator({.worker = {.wait_limit = std::chrono::seconds(5)}});
    return syncline::run_rank(argv[1], *communicator);
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
