// What NodeWire is built on: memory that the ranks of a node share, and messages between nodes. comm/local makes both
// from the heap of one process, for ranks as threads; comm/mpi makes them from MPI.
//
// Unless noted otherwise, calls come one at a time from the rank that owns the object. They throw CommError when the
// system below fails.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/rounds/topology.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

// Memory that the ranks of one node share, with one part per rank.
class Window {
 public:
  virtual ~Window() = default;
  // Local rank l's part in this process: page-aligned, at least the requested bytes.
  std::byte* part(int l) const { return parts_[static_cast<std::size_t>(l)]; }

 protected:
  std::vector<std::byte*> parts_;
};

// The system's page size in bytes: 4 KiB, on some systems 16 or 64 KiB.
std::size_t page_size();
// Rounded up to whole pages.
inline std::size_t in_pages(std::size_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

// A window over heap memory, for ranks as threads. Each rank makes its own window over the same `memory`, which must
// have at least heap_window_bytes() bytes.
std::size_t heap_window_bytes(int ranks, std::size_t bytes_a_rank);
std::unique_ptr<Window> make_heap_window(std::shared_ptr<std::vector<std::byte>> memory, int ranks,
                                         std::size_t bytes_a_rank);
// The window of a rank that shares memory with no other rank. Zeroed.
std::unique_ptr<Window> make_private_window(std::size_t bytes);

class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  // Collective over the ranks of the node. Returns zeroed memory, or nullptr on all ranks if there is not enough; why()
  // then gives the reason. The parts follow each other, each in whole pages. Each rank may free the memory on its own,
  // also after the end of the communicator.
  virtual std::unique_ptr<Window> allocate(std::size_t bytes_a_rank) = 0;
  virtual std::string why() const { return ""; }
};

// What this rank sends to, and receives from, the ranks of a rail on other nodes.
struct Messages {
  struct Outgoing {
    int node = 0;
    const void* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Incoming {
    int node = 0;
    void* data = nullptr;
    std::size_t bytes = 0;  // at most
  };
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;

  void clear() {
    sends.clear();
    receives.clear();
  }
};

using Moment = std::chrono::steady_clock::time_point;

class Network {
 public:
  virtual ~Network() = default;

  // Starts the messages, along the channel's rail, which this rank has. A pair of nodes sends and receives equally many
  // on a channel, in the same order. Do not reuse a channel or the messages' memory before test() has returned true for
  // the channel.
  virtual void start(int channel, const Messages& messages) = 0;
  virtual bool test(int channel) = 0;
  // Whether the messages to and from this node have completed.
  virtual bool has_come(int channel, int node) const = 0;

  // The last call for messages of collectives, after one has failed: ends the receives under way, so that none of them
  // writes to its memory later. Sends may still read theirs. Waits for a second at most, for messages that are half
  // received.
  virtual void abandon() noexcept = 0;

  // A count that grows with each message of a collective that arrives or has been sent; not with notes and reports. Any
  // thread may call it at any time.
  virtual std::uint64_t moved() const noexcept = 0;

  // Rank 0 posts; see communicator.h. These two calls may come during the others.
  virtual void post_note(std::uint64_t note) = 0;
  virtual std::optional<std::uint64_t> take_note() = 0;

  // The clock of reports and arrivals.
  virtual Moment now() const { return Moment::clock::now(); }

  // Sends a report of a few hundred bytes to the ranks of other nodes while a collective stalls. Neither side waits.
  virtual void post_report(std::span<const std::byte> report) = 0;
  // Returns false if there is no report.
  virtual bool take_report(std::vector<std::byte>& report) = 0;

  // The last call; see Wire::close. `missing` names the ranks of the node that have not come to their end; any thread
  // may call it during close().
  virtual bool close(bool clean, const std::function<Missing()>& missing) noexcept = 0;
};

// Channels. kMeeting is on rail 0, whose ranks are the first of their nodes; on each rail, each chunk in flight has its
// own.
inline constexpr int kChunksInFlight = 10;
enum : int { kMeeting = 0, kExchange = 1 };
inline int exchange_channel(int rail, std::int64_t k) {
  return kExchange + rail * kChunksInFlight + static_cast<int>(k % kChunksInFlight);
}
inline int rail_of(int channel) { return channel == kMeeting ? 0 : (channel - kExchange) / kChunksInFlight; }
// The rank of a node with which this one exchanges messages on a channel.
inline int peer_on(const Topology& topology, int channel, int node) {
  return topology.rank_on_rail(rail_of(channel), node);
}
inline int channels_of(const Topology& topology) { return exchange_channel(topology.rails, 0); }

}  // namespace syncline::comm
