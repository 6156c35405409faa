// LaggingRank: a communicator that pauses at random before steps and collectives, and before and after waits. Ranks
// then lag behind each other by amounts that an idle machine never shows, so a program that uses memory too early or
// too late fails. Groups do not lag.
//
// Ownership: refers to the communicator behind it, which must outlive it. Threads: only one thread may call it, publish
// included. Errors: as communicator.h.
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "syncline/distributed/communicator.h"

namespace syncline::graphs {

class LaggingRank : public comm::Communicator {
 public:
  // Ranks with equal seeds pause at different places. About one place in `one_in` has a pause.
  LaggingRank(comm::Communicator& communicator, std::uint64_t seed, unsigned one_in = 16)
      : communicator_(communicator),
        draw_(seed * 64 + static_cast<std::uint64_t>(communicator.rank())),
        one_in_(one_in) {}

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  comm::Ticket all_reduce(const comm::Tag& tag, void* data, std::int64_t count, DType dtype,
                          comm::Reduce reduce) override {
    pause();
    return communicator_.all_reduce(tag, data, count, dtype, reduce);
  }
  comm::Ticket reduce_scatter(const comm::Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                              comm::Reduce reduce) override {
    pause();
    return communicator_.reduce_scatter(tag, data, counts, dtype, reduce);
  }
  comm::Ticket all_gather(const comm::Tag& tag, const void* send, void* receive,
                          std::span<const std::int64_t> byte_counts) override {
    pause();
    return communicator_.all_gather(tag, send, receive, byte_counts);
  }
  comm::Ticket gather_on_nodes(const comm::Tag& tag, void* data, std::span<const std::int64_t> byte_counts) override {
    pause();
    return communicator_.gather_on_nodes(tag, data, byte_counts);
  }
  comm::Ticket broadcast(const comm::Tag& tag, void* data, std::int64_t bytes, int root) override {
    pause();
    return communicator_.broadcast(tag, data, bytes, root);
  }
  void wait(comm::Ticket ticket) override {
    pause();
    communicator_.wait(ticket);
    pause();
  }
  void publish(const comm::Position& position) override {
    pause();
    communicator_.publish(position);
  }
  bool done(comm::Ticket ticket) const override { return communicator_.done(ticket); }
  std::byte* shared_memory(std::size_t bytes) override { return communicator_.shared_memory(bytes); }
  const std::byte* shared_memory_of(int rank) const override { return communicator_.shared_memory_of(rank); }
  comm::NodePlace node_place() const override { return communicator_.node_place(); }
  comm::NodeBlock node_memory(std::size_t bytes) override { return communicator_.node_memory(bytes); }
  bool one_node() const override { return communicator_.one_node(); }
  std::unique_ptr<comm::Communicator> group(std::span<const int> ranks) override { return communicator_.group(ranks); }
  bool lowest_living() const override { return communicator_.lowest_living(); }
  std::string describe() const override { return communicator_.describe(); }
  std::string layout() const override { return communicator_.layout(); }
  void post_note(std::uint64_t note) override { communicator_.post_note(note); }
  std::optional<std::uint64_t> take_note() override { return communicator_.take_note(); }
  [[noreturn]] void abort_job(int exit_code) override {
    communicator_.abort_job(exit_code);
    std::abort();  // g++ 12 takes it that the call may return
  }

 private:
  void pause() {
    if (draw_() % one_in_ == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw_() % 500));
  }

  comm::Communicator& communicator_;
  std::mt19937_64 draw_;
  const unsigned one_in_;
};

}  // namespace syncline::graphs
