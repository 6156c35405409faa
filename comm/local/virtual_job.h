// VirtualJob: the wires of many nodes, driven by one thread in virtual time. The code of every build decides what is
// sent when; this job decides when it comes.
//
// A node has one link, full duplex. A message occupies its sender's link, then, after the latency, its receiver's.
// Memory, sums and polling take no time. One thread at a time.
#pragma once

#include <map>
#include <memory>
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
  // Messages have a length but no bytes, so ranks may share memory. Small collectives have bytes.
  bool lengths_only = false;
};

class VirtualJob {
 public:
  explicit VirtualJob(const VirtualOptions& options);
  ~VirtualJob();
  VirtualJob(const VirtualJob&) = delete;
  VirtualJob& operator=(const VirtualJob&) = delete;

  int size() const;
  // Carries out one collective, one entry a rank, that all ranks call at once. Returns the seconds until the last rank
  // has its result. Throws what a rank throws, and InternalError if ranks wait for ever; the job is over then.
  double run(std::span<const Collective> collectives);
  // Carries out a collective that stalls, and lets the ranks ask each other for five seconds. Returns which ranks each
  // rank that waits for ever misses; the job is over then.
  std::map<int, std::string> stall(std::span<const Collective> collectives);

  struct State;

 private:
  double drive(std::span<const Collective> collectives, std::vector<bool>& waits);

  const std::unique_ptr<State> state_;
};

}  // namespace syncline::comm
