// VirtualJob: the wires of many nodes, driven by one thread in virtual time. The code of every build decides what is
// sent when; this job decides when it comes.
//
// A node has one link, full duplex. A message occupies its sender's link, then, after the latency, its receiver's.
// Memory, sums and polling take no time. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/worker/collective.h"
#include "syncline/distributed/settings.h"

namespace syncline::comm {

struct VirtualLink {
  double latency = 5e-6;      // seconds
  double bandwidth = 12.5e9;  // bytes/s
  double overhead = 0;        // seconds that a message occupies its sender's link besides its bytes
};

struct VirtualOptions {
  std::vector<int> node_of_rank = {};  // by node
  VirtualLink link = {};
  std::map<int, VirtualLink> links_of_nodes = {};  // of nodes with another link
  double jitter = 0;                               // a message takes up to this many seconds longer, evenly distributed
  double drops = 0;  // this share of messages is lost and sent again after `resend` seconds
  double resend = 1e-3;
  unsigned seed = 1;
  std::map<int, double> ends = {};  // when ranks die; 0: they never call the collective
  AlgorithmTable algorithms = {};
  // Messages have a length but no bytes, so all ranks have one shared memory. Small collectives have bytes.
  bool lengths_only = false;
};

// What a rank does in a step: it computes, then begins a collective, which goes on while the rank computes further,
// then waits for one that it has begun.
struct VirtualAction {
  double seconds = 0;  // of computation
  std::optional<Collective> begins = {};
  int awaits = -1;  // the number of a collective among those of the step; -1: none
};

class VirtualJob {
 public:
  explicit VirtualJob(const VirtualOptions& options);
  ~VirtualJob();
  VirtualJob(const VirtualJob&) = delete;
  VirtualJob& operator=(const VirtualJob&) = delete;

  int size() const;
  // The rank's memory of the last collective kSharedMemory; null if the rank is alone on its node.
  std::byte* shared_memory(int rank) const;
  // Carries out a step, one entry a rank. A rank's collectives go one after the other, in the order in which it begins
  // them. Returns the seconds until the last rank has done its actions and has the results of its collectives. Throws
  // what a rank throws, and InternalError if ranks wait for ever; the job is over then.
  double run(std::span<const std::vector<VirtualAction>> steps);
  // The step of one collective, one entry a rank, that all ranks call at once.
  double run(std::span<const Collective> collectives);
  // Carries out a collective that stalls, and lets the ranks ask each other for five seconds. Returns which ranks each
  // rank that waits for ever misses; the job is over then.
  std::map<int, std::string> stall(std::span<const Collective> collectives);

  struct State;

 private:
  double drive(std::span<const std::vector<VirtualAction>> steps);

  const std::unique_ptr<State> state_;
};

}  // namespace syncline::comm
