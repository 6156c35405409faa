// Jobs over the nodes that `nodes` makes.
//   node_job traffic: checks that a node sends only the data that the other nodes need
//   node_job endless: all-reduces until one fails; exits with the error's code. Makes $TMPDIR/begun after the first one
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/make_communicator.h"

namespace syncline::comm {
namespace {

// Bytes that left this node over the network "data" so far: the ninth number behind the name.
std::int64_t bytes_sent() {
  std::ifstream file("/proc/self/net/dev");
  for (std::string word; file >> word;) {
    if (word != "data:") continue;
    std::int64_t number = 0;
    for (int i = 0; i < 9; ++i) file >> number;
    return number;
  }
  throw std::runtime_error("no network called data: run it with tests/mpi/namespaces/nodes");
}

std::vector<std::int32_t> gather(Communicator& comm, std::int32_t value) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(comm.size()));
  const std::vector<std::int64_t> counts(values.size(), sizeof(value));
  comm.wait(comm.all_gather({}, &value, values.data(), counts));
  return values;
}

// Hosts are called node0, node1, ...
std::int32_t node_number() {
  std::string name(64, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0 || name.compare(0, 4, "node") != 0)
    throw std::runtime_error("this host is no node: run it with tests/mpi/namespaces/nodes");
  return std::stoi(name.substr(4));
}

// A node sends its sums once, in slices, to the other nodes: of n nodes each sends (n - 1) / n of the buffer to reduce,
// and as much again to distribute the result.
void check_traffic(Communicator& comm) {
  const std::vector<std::int32_t> places = gather(comm, node_number());
  const auto nodes = static_cast<double>(std::set<std::int32_t>(places.begin(), places.end()).size());
  constexpr std::int64_t kCount = 4 << 20;
  constexpr int kRepetitions = 4;
  std::vector<float> data(kCount, 1.f);
  comm.barrier();
  const std::int64_t before = bytes_sent();
  comm.barrier();
  for (int i = 0; i < kRepetitions; ++i)
    comm.wait(comm.all_reduce({}, data.data(), kCount, DType::kFloat32, Reduce::kSum));
  comm.barrier();
  const double sent = static_cast<double>(bytes_sent() - before) / (kRepetitions * kCount * sizeof(float));
  const double needed = 2 * (nodes - 1) / nodes;
  std::printf("rank %d: %.3f times the buffer left its node, %.3f are needed\n", comm.rank(), sent, needed);
  // Headers, acknowledgements and retransmissions come on top.
  const bool good = sent > needed && sent < 1.15 * needed;
  for (const std::int32_t other : gather(comm, good ? 1 : 0))
    if (other == 0) throw std::runtime_error("a node has sent another amount of data than the others need");
}

void say_begun() {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || !std::ofstream(std::string(folder) + "/begun"))
    throw std::runtime_error("no file can be made in TMPDIR");
}

void reduce_forever(Communicator& comm) {
  std::vector<float> data(1 << 18, 1.f);
  for (std::uint64_t step = 0;; ++step) {
    data.assign(data.size(), 1.f);
    comm.wait(comm.all_reduce(Tag{.plan = 0xbeef, .step = step}, data.data(), std::ssize(data), DType::kFloat32,
                              Reduce::kSum));
    if (data.back() != static_cast<float>(comm.size())) throw std::runtime_error("a wrong sum");
    if (step == 0 && comm.rank() == 0) say_begun();
  }
}

}  // namespace
}  // namespace syncline::comm

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what != "traffic" && what != "endless") return 2;
  using namespace syncline;
  return comm::run_job(
      "node_job", [] { return comm::options_for_threads(1, keras_json().comm); },
      what == "traffic" ? comm::check_traffic : comm::reduce_forever);
}
