// MpiNetwork: messages between nodes. Only close() and abandon() block; they do not hold MPI while they wait, so other
// communicators of the process continue.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "comm/mpi/mpi_session.h"
#include "comm/shared/node.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

class MpiNetwork : public Network {
 public:
  // `job`: MPI communicator of all ranks of the job.
  MpiNetwork(MpiHandle job, Topology topology, const WorkerOptions& limits);

  void start(int channel, const Messages& messages) override;
  bool test(int channel) override;
  bool has_come(int channel, int node) const override;
  void abandon() noexcept override;
  std::uint64_t moved() const noexcept override { return moved_; }
  void post_note(std::uint64_t note) override;
  std::optional<std::uint64_t> take_note() override;
  void post_report(std::span<const std::byte> report) override;
  bool take_report(std::vector<std::byte>& report) override;
  bool close(bool clean, const std::function<Missing()>& missing) noexcept override;

 private:
  struct Channel {
    std::vector<MpiRequest> sends, receives;
    std::vector<int> receivers, senders;  // peer nodes of each
  };
  using Report = std::shared_ptr<const std::vector<std::byte>>;  // one for all receivers
  template <class Message>
  struct Sent {
    Message message;
    MpiRequest request = MpiRequest::kNull;
  };

  bool all_done(const LockedMpi& mpi, std::vector<MpiRequest>& requests);
  template <class Message>
  void drop_delivered(const LockedMpi& mpi, std::list<Sent<Message>>& sent);
  bool idle() const;
  void deliver();

  const MpiHandle job_;
  const Topology topology_;
  const WorkerOptions limits_;
  std::vector<Channel> channels_;
  // Guarded by LockedMpi: notes come beside collectives. Lists: MPI needs stable addresses.
  std::list<Sent<std::uint64_t>> notes_sent_;
  std::list<Sent<Report>> reports_sent_;
  bool abandoned_ = false;                // a collective failed: other ranks may never come to the end
  std::uint64_t notes_ = 0;               // posted (rank 0) or taken (other ranks)
  std::atomic<std::uint64_t> moved_ = 0;  // requests of collectives that have completed
};

}  // namespace syncline::comm
