// MpiNetwork: messages between nodes, and what all ranks exchange without shared memory. Nothing here blocks but
// close(), and that holds no lock meanwhile: other communicators of the process go on.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <vector>

#include "comm/mpi/mpi_session.h"
#include "comm/shared/node.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

class MpiNetwork : public Network {
 public:
  // `job`: all ranks of the job.
  MpiNetwork(MpiHandle job, Topology topology, std::int64_t piece_bytes, const WorkerOptions& limits);

  void start(int channel, std::span<const Parcel> parcels) override;
  bool test(int channel) override;
  bool has_come(int channel, int node) const override;
  void start_gather(const void* send, void* receive, std::span<const std::int64_t> byte_counts) override;
  void start_broadcast(void* data, std::int64_t bytes, int root) override;
  bool test_all() override;
  void post_note(std::uint64_t note) override;
  std::optional<std::uint64_t> take_note() override;
  void post_report(std::span<const std::byte> report) override;
  bool take_report(std::vector<std::byte>& report) override;
  bool close(bool clean, const std::function<Missing()>& missing) noexcept override;

 private:
  struct Channel {
    std::vector<MPI_Request> sends, receives;
    std::vector<int> nodes;  // of the receives
  };
  // A part of a broadcast.
  struct Piece {
    std::byte* data;
    int bytes, root;
  };
  template <class Message>
  struct Sent {
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int peer(int node) const;
  template <class Call>
  void for_pieces(std::byte* data, std::int64_t bytes, const Call& call) const;
  void send(const std::byte* data, int bytes, int rank);
  void receive(std::byte* data, int bytes, int rank);
  void begin_piece();
  void pass_piece_on();
  template <class Message>
  void drop_delivered(std::list<Sent<Message>>& sent);
  bool idle() const;
  void deliver();

  const MpiHandle job_;
  const Topology topology_;
  const std::int64_t piece_bytes_;
  const WorkerOptions limits_;
  std::array<Channel, kChannels> channels_;
  std::vector<MPI_Request> sends_, receives_;  // of the gather, or of the first piece of the broadcast, under way
  std::deque<Piece> pieces_;                   // of the broadcast
  bool passed_on_ = false;                     // the first piece, to those that get it from this rank
  std::list<Sent<std::uint64_t>> notes_sent_;  // a list leaves them where they are
  std::list<Sent<std::vector<std::byte>>> reports_sent_;
  std::uint64_t notes_ = 0;  // rank 0: posted, others: taken
};

}  // namespace syncline::comm
