// Jobs over the nodes that `nodes` makes.
//   node_job traffic: checks that a node sends and receives only the data that nodes need
//   node_job endless: all-reduces until one fails; exits with the error's code. Makes $TMPDIR/begun after the first one
//   node_job slow: a broadcast that takes seconds; fails if it takes no longer than twice SYNCLINE_WAIT_LIMIT
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/make_communicator.h"

namespace syncline::comm {
namespace {

struct Traffic {
  std::int64_t received = 0, sent = 0;
};

// Bytes that this node has exchanged over the network "data" so far: the first and the ninth number behind the name.
Traffic traffic() {
  std::ifstream file("/proc/self/net/dev");
  for (std::string word; file >> word;) {
    if (word != "data:") continue;
    std::array<std::int64_t, 9> numbers{};
    for (std::int64_t& number : numbers) file >> number;
    return {numbers[0], numbers[8]};
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

constexpr std::int64_t kCount = 4 << 20;
constexpr int kRepetitions = 4;

// The traffic of this node in one of some repetitions.
template <class Collective>
Traffic traffic_of(Communicator& comm, const Collective& collective) {
  comm.barrier();
  const Traffic before = traffic();
  comm.barrier();
  for (int i = 0; i < kRepetitions; ++i) comm.wait(collective());
  comm.barrier();
  const Traffic after = traffic();
  return {(after.received - before.received) / kRepetitions, (after.sent - before.sent) / kRepetitions};
}

// Headers, acknowledgements and retransmissions come on top, and the acknowledgements of what goes the other way.
void expect_bytes(Communicator& comm, const char* what, std::int64_t bytes, double needed, double allowance) {
  const auto moved = static_cast<double>(bytes);
  std::printf("rank %d: %s: %.0f bytes, %.0f are needed\n", comm.rank(), what, moved, needed);
  const bool good = moved >= needed && moved < 1.15 * needed + allowance;
  for (const std::int32_t other : gather(comm, good ? 1 : 0))
    if (other == 0) throw std::runtime_error(std::string(what) + ": another amount of data than the nodes need");
}

void check_traffic(Communicator& comm) {
  const std::vector<std::int32_t> places = gather(comm, node_number());
  const auto nodes = static_cast<double>(std::set<std::int32_t>(places.begin(), places.end()).size());
  const auto here = static_cast<double>(std::count(places.begin(), places.end(), node_number()));
  std::vector<float> data(kCount, 1.f);
  constexpr double kBytes = kCount * sizeof(float);
  // A node sends its sums once, in slices, to the other nodes: of n nodes each sends (n - 1) / n of the buffer to
  // reduce, and as much again to distribute the result.
  const Traffic sum =
      traffic_of(comm, [&] { return comm.all_reduce({}, data.data(), kCount, DType::kFloat32, Reduce::kSum); });
  const double summed = 2 * (nodes - 1) / nodes * kBytes;
  expect_bytes(comm, "sent for a sum", sum.sent, summed, 0);
  // Every byte enters a node once.
  constexpr double kAcknowledgements = kBytes / 16;
  const Traffic copy = traffic_of(comm, [&] { return comm.broadcast({}, data.data(), kCount * sizeof(float), 0); });
  expect_bytes(comm, "received of a broadcast", copy.received, node_number() == places[0] ? 0 : kBytes,
               kAcknowledgements);
  const auto ranks = static_cast<std::int64_t>(places.size());
  const std::vector<std::int64_t> parts(places.size(), kCount * static_cast<std::int64_t>(sizeof(float)) / ranks);
  const std::vector<std::byte> own(static_cast<std::size_t>(parts[0]));
  const Traffic gathered = traffic_of(comm, [&] { return comm.all_gather({}, own.data(), data.data(), parts); });
  const double of_others = (static_cast<double>(ranks) - here) * static_cast<double>(parts[0]);
  expect_bytes(comm, "received of a gather", gathered.received, of_others, kAcknowledgements);
}

// Takes longer than the limit for a wait, and moves all the time.
void broadcast_slowly(Communicator& comm) {
  const char* const limit = std::getenv("SYNCLINE_WAIT_LIMIT");
  if (limit == nullptr) throw std::runtime_error("set SYNCLINE_WAIT_LIMIT");
  std::vector<float> data(kCount, static_cast<float>(1 + comm.rank()));
  const auto begin = std::chrono::steady_clock::now();
  comm.wait(comm.broadcast({}, data.data(), kCount * sizeof(float), 0));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("rank %d: the broadcast took %.1f s\n", comm.rank(), seconds.count());
  if (data.back() != 1) throw std::runtime_error("a wrong value");
  const std::vector<std::int32_t> longer = gather(comm, seconds.count() > 2 * std::atof(limit) ? 1 : 0);
  if (std::count(longer.begin(), longer.end(), 1) == 0) throw std::runtime_error("the broadcast was too fast");
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
  using namespace syncline;
  const std::map<std::string, void (*)(comm::Communicator&)> jobs{
      {"traffic", comm::check_traffic}, {"endless", comm::reduce_forever}, {"slow", comm::broadcast_slowly}};
  const auto job = jobs.find(argc == 2 ? argv[1] : "");
  if (job == jobs.end()) return 2;
  return comm::run_job(
      "node_job", [] { return comm::options_for_threads(1, keras_json().comm); }, job->second);
}
