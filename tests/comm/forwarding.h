// A communicator that forwards all pure virtual functions, for tests that override a few of them. The others keep their
// defaults: its ranks are not on one node, and no rank's memory is mapped by another.
#pragma once

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

class Forwarding : public Communicator {
 public:
  explicit Forwarding(Communicator& communicator) : communicator_(communicator) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  Ticket all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) override {
    return communicator_.all_reduce(tag, data, count, dtype, reduce);
  }
  Ticket reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                        Reduce reduce) override {
    return communicator_.reduce_scatter(tag, data, counts, dtype, reduce);
  }
  Ticket all_gather(const Tag& tag, const void* send, void* receive,
                    std::span<const std::int64_t> byte_counts) override {
    return communicator_.all_gather(tag, send, receive, byte_counts);
  }
  Ticket gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts) override {
    return communicator_.gather_on_nodes(tag, data, byte_counts);
  }
  Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) override {
    return communicator_.broadcast(tag, data, bytes, root);
  }
  void wait(Ticket ticket) override { communicator_.wait(ticket); }
  bool done(Ticket ticket) const override { return communicator_.done(ticket); }
  std::byte* shared_memory(std::size_t bytes) override { return communicator_.shared_memory(bytes); }
  std::unique_ptr<Communicator> group(std::span<const int> ranks) override { return communicator_.group(ranks); }
  std::string describe() const override { return communicator_.describe(); }
  void post_note(std::uint64_t note) override { communicator_.post_note(note); }
  std::optional<std::uint64_t> take_note() override { return communicator_.take_note(); }

 private:
  Communicator& communicator_;
};

}  // namespace syncline::comm
