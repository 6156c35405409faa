// What NodeWire stands on: which ranks share a node, memory that they share, and messages between nodes. comm/local
// makes all three of one process's heap, for ranks as threads; comm/mpi of MPI.
//
// Calls come one at a time from the rank that owns the object. They throw CommError when the system below fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/worker/worker.h"

namespace syncline::comm {

struct Topology {
  int rank = 0;                         // in the job
  int node = 0, local = 0;              // the rank's node, and its number there
  std::vector<std::vector<int>> nodes;  // the ranks of each, ascending; nodes by their first rank
  int machines = 0;                     // fewer than nodes where ranks that could share memory have none to share

  int size() const;
  int node_count() const { return static_cast<int>(nodes.size()); }
  const std::vector<int>& own() const { return nodes[static_cast<std::size_t>(node)]; }
  int local_size() const { return static_cast<int>(own().size()); }
  // "ranks 0-1 | 2,4" for two nodes; of a large job the beginning and a digest.
  std::string describe() const;
  // So many ranks of every node exchange data with other nodes: rank l with the rank l of each.
  int lanes() const;
};

// From the number of each rank's node (any numbers, equal on one node).
Topology make_topology(int rank, std::span<const int> node_of_rank);

// Memory that the ranks of one node share, a part for each.
class Window {
 public:
  virtual ~Window() = default;
  // Local rank l's part in this process: at least the bytes asked for, at the beginning of a page.
  std::byte* part(int l) const { return parts_[static_cast<std::size_t>(l)]; }

 protected:
  std::vector<std::byte*> parts_;
};

inline constexpr std::size_t kPage = 4096;
constexpr std::size_t in_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Over memory of this process, for ranks that are its threads, who each make one of the same memory; at least
// heap_window_bytes() of it.
std::size_t heap_window_bytes(int ranks, std::size_t bytes_a_rank);
std::unique_ptr<Window> make_heap_window(std::shared_ptr<std::vector<std::byte>> memory, int ranks,
                                         std::size_t bytes_a_rank);
// Of a rank that shares with nobody. Zeroed.
std::unique_ptr<Window> make_private_window(std::size_t bytes);

class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  // Collective over the ranks of the node; nullptr on all of them if the memory cannot be had, for which why() has the
  // reason. Zeroed.
  virtual std::unique_ptr<Window> allocate(std::size_t bytes_a_rank) = 0;
  virtual std::string why() const { return ""; }
};

// What goes to, and what comes from, the rank of this lane on another node.
struct Parcel {
  int node = 0;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t send_bytes = 0, receive_bytes = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  // Begins to send and to receive the parcels. Both sides of a pair begin the same number of them on a channel, in the
  // same order; a channel is used again when test() has said that it is done. The parcels' buffers stay until then.
  virtual void start(int channel, std::span<const Parcel> parcels) = 0;
  virtual bool test(int channel) = 0;
  // Whether the parcels to and from this node are through.
  virtual bool has_come(int channel, int node) const = 0;

  // Between all ranks of the job, one at a time; as Communicator's.
  virtual void start_gather(const void* send, void* receive, std::span<const std::int64_t> byte_counts) = 0;
  virtual void start_broadcast(void* data, std::int64_t bytes, int root) = 0;
  virtual bool test_all() = 0;

  // Of rank 0: see communicator.h.
  virtual void post_note(std::uint64_t note) = 0;
  virtual std::optional<std::uint64_t> take_note() = 0;

  // Reports to the ranks of other nodes while the job stalls; a few hundred bytes. Neither side waits.
  virtual void post_report(std::span<const std::byte> report) = 0;
  // False if there is none.
  virtual bool take_report(std::vector<std::byte>& report) = 0;

  // The last call; see Wire::close. `missing` says which ranks have not come to their end, as far as the node can see;
  // any thread may ask it meanwhile.
  virtual bool close(bool clean, const std::function<Missing()>& missing) noexcept = 0;
};

inline constexpr int kChannels = 6;

}  // namespace syncline::comm
