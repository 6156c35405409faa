#include "comm/single.h"

#include <cstring>

#include "comm/worker/collective.h"
#include "comm/worker/trace.h"

namespace syncline::comm {
namespace {

class SingleCommunicator : public Communicator {
 public:
  ~SingleCommunicator() override { end_trace(*this, nullptr, /*clean=*/true); }

  int rank() const override { return 0; }
  int size() const override { return 1; }

  Ticket all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) override {
    make_all_reduce(tag, data, count, dtype, reduce);  // for its checks
    return ++last_;
  }

  Ticket reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                        Reduce reduce) override {
    make_reduce_scatter(tag, data, counts, dtype, reduce, 1);
    return ++last_;
  }

  Ticket all_gather(const Tag& tag, const void* send, void* receive,
                    std::span<const std::int64_t> byte_counts) override {
    const Collective collective = make_all_gather(tag, send, receive, byte_counts, 0, 1);
    if (send != receive && collective.bytes > 0) std::memcpy(receive, send, static_cast<std::size_t>(collective.bytes));
    return ++last_;
  }

  Ticket gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts) override {
    make_gather_on_nodes(tag, data, byte_counts, 1);
    return ++last_;
  }

  Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) override {
    make_broadcast(tag, data, bytes, root, 1);
    return ++last_;
  }

  void wait(Ticket ticket) override {
    if (ticket > last_) fail("wait: ticket ", ticket, " was never issued, the last one is ", last_);
  }
  bool done(Ticket) const override { return true; }
  std::byte* shared_memory(std::size_t) override { return nullptr; }
  std::unique_ptr<Communicator> group(std::span<const int> ranks) override {
    place_in_group(ranks, 0, 1);
    return make_single_communicator();
  }
  std::string describe() const override { return "1 rank on 1 node"; }
  void post_note(std::uint64_t) override {}
  std::optional<std::uint64_t> take_note() override { return {}; }

 private:
  Ticket last_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() { return std::make_unique<SingleCommunicator>(); }

}  // namespace syncline::comm
