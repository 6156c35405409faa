// MpiWire: collectives over one MPI communicator, step by step, for comm/worker.h.
//
// Before any data moves, the ranks compare their headers with one small all-reduce: the largest value of each word w
// and of ~w. It is polled, so it is also what waits for late ranks; the transfer that follows finds all ranks there.
#pragma once

#include <mpi.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi/mpi_communicator.h"
#include "comm/mpi/mpi_session.h"
#include "comm/worker.h"

namespace syncline::comm {

class MpiWire : public Wire {
 public:
  // Collective. Checks the launch first.
  explicit MpiWire(const MpiOptions& options);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void begin(const Job& job) override;
  Meeting poll(const Job& job) override;
  void transfer(const Job& job) override;
  void post_note(std::uint64_t note) override;
  std::optional<std::uint64_t> take_note() override;
  std::string name_missing() const override { return ""; }
  void close(bool clean) noexcept override;

  [[noreturn]] void abort_job(int exit_code);

 private:
  enum class Phase { kIdle, kHeader, kAgreed, kSmall };

  bool headers_agree() const;
  [[noreturn]] void tell_mismatch(const Job& job);
  void start_small(const Job& job);
  void place_own_part(const Job& job);
  void reduce_in_pieces(const Job& job);
  void broadcast_in_pieces(std::byte* data, std::int64_t bytes, int root, const Job& job);
  void gather(const Job& job);
  void check(int code, const char* call, const Job& job) const;
  void deliver_notes() noexcept;

  const std::shared_ptr<MpiSession> session_;
  const std::int64_t piece_bytes_;
  const std::int64_t gather_bytes_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  Phase phase_ = Phase::kIdle;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::array<std::uint64_t, 2 * kHeaderWords> words_{};  // w and ~w
  std::array<std::uint64_t, 2 * kHeaderWords> largest_{};
  std::vector<int> counts_, offsets_;  // by rank, of the gather under way

  struct Sent {
    std::uint64_t note;
    MPI_Request request;
  };
  std::deque<Sent> sent_;    // rank 0's, under way; a deque leaves them where they are
  std::uint64_t notes_ = 0;  // rank 0: posted, others: taken
};

}  // namespace syncline::comm
