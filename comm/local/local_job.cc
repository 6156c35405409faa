#include "comm/local/local_job.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

// Beside the channels of Network::start.
enum : int { kNote = -1, kReport = -2 };

std::vector<std::byte> letter_of(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return {begin, begin + bytes};
}

}  // namespace

class HeapMemory : public NodeMemory {
 public:
  HeapMemory(std::shared_ptr<LocalJob> job, const Topology& topology)
      : job_(std::move(job)), node_(topology.node), ranks_(topology.local_size()) {}

  std::unique_ptr<Window> allocate(std::size_t bytes_a_rank) override {
    return make_heap_window(job_->join(node_, ranks_, heap_window_bytes(ranks_, bytes_a_rank)), ranks_, bytes_a_rank);
  }

 private:
  const std::shared_ptr<LocalJob> job_;
  const int node_, ranks_;
};

class HeapNetwork : public Network {
 public:
  HeapNetwork(std::shared_ptr<LocalJob> job, Topology topology)
      : job_(std::move(job)), topology_(std::move(topology)), open_(static_cast<std::size_t>(channels_of(topology_))) {}

  void start(int channel, const Messages& messages) override {
    auto& open = open_[static_cast<std::size_t>(channel)];
    SYNCLINE_CHECK(open.empty());
    open = messages.receives;
    for (const Messages::Outgoing& message : messages.sends)
      job_->send({topology_.rank, peer_on(topology_, channel, message.node), channel},
                 letter_of(message.data, message.bytes));
  }

  bool test(int channel) override {
    auto& open = open_[static_cast<std::size_t>(channel)];
    std::set<int> late;  // a letter that comes meanwhile belongs to the first message of its node
    std::erase_if(open, [&](const Messages::Incoming& message) {
      LocalJob::Letter letter;
      if (late.contains(message.node)) return false;
      if (!job_->receive({peer_on(topology_, channel, message.node), topology_.rank, channel}, letter)) {
        late.insert(message.node);
        return false;
      }
      SYNCLINE_CHECK(letter.size() <= message.bytes);
      if (!letter.empty()) std::memcpy(message.data, letter.data(), letter.size());
      ++moved_;
      return true;
    });
    return open.empty();
  }

  bool has_come(int channel, int node) const override {
    const auto& open = open_[static_cast<std::size_t>(channel)];
    return std::none_of(open.begin(), open.end(), [&](const Messages::Incoming& message) {
      return message.node == node && !job_->has({peer_on(topology_, channel, node), topology_.rank, channel});
    });
  }

  void abandon() noexcept override {
    for (auto& open : open_) open.clear();
  }

  std::uint64_t moved() const noexcept override { return moved_; }

  void post_note(std::uint64_t note) override {
    for (int r = 1; topology_.rank == 0 && r < topology_.size(); ++r)
      job_->send({0, r, kNote}, letter_of(&note, sizeof note));
  }

  std::optional<std::uint64_t> take_note() override {
    LocalJob::Letter letter;
    std::uint64_t note = 0;
    if (!job_->receive({0, topology_.rank, kNote}, letter)) return {};
    std::memcpy(&note, letter.data(), sizeof note);
    return note;
  }

  void post_report(std::span<const std::byte> report) override {
    for (int n = 0; n < topology_.node_count(); ++n)
      for (const int r : topology_.nodes[static_cast<std::size_t>(n)])
        if (n != topology_.node) job_->send({topology_.rank, r, kReport}, letter_of(report.data(), report.size()));
  }

  bool take_report(std::vector<std::byte>& report) override {
    for (int r = 0; r < topology_.size(); ++r)
      if (job_->receive({r, topology_.rank, kReport}, report)) return true;
    return false;
  }

  bool close(bool, const std::function<Missing()>&) noexcept override { return true; }

 private:
  const std::shared_ptr<LocalJob> job_;
  const Topology topology_;
  std::vector<std::vector<Messages::Incoming>> open_;
  std::atomic<std::uint64_t> moved_ = 0;
};

LocalJob::LocalJob(const std::vector<int>& node_of_rank, JobNumbers numbers) : numbers_(std::move(numbers)) {
  for (const int r : ranks_by_node(node_of_rank)) node_of_rank_.push_back(node_of_rank[static_cast<std::size_t>(r)]);
  if (numbers_.numbers.empty()) numbers_.size = static_cast<int>(node_of_rank.size());
}

Topology LocalJob::topology(int rank) const {
  Topology topology = make_topology(rank, node_of_rank_);
  topology.job = numbers_;
  return topology;
}

std::unique_ptr<NodeMemory> LocalJob::memory(int rank) {
  return std::make_unique<HeapMemory>(shared_from_this(), topology(rank));
}

std::unique_ptr<Network> LocalJob::network(int rank) {
  return std::make_unique<HeapNetwork>(shared_from_this(), topology(rank));
}

std::shared_ptr<LocalJob> LocalJob::group(const std::vector<int>& ranks, int rank) {
  const std::lock_guard lock(mutex_);
  const auto which = std::pair(ranks, groups_asked_for_[{ranks, rank}]++);
  Pending& pending = groups_[which];
  if (!pending.job) {
    std::vector<int> nodes;
    for (const int r : ranks) nodes.push_back(node_of_rank_[static_cast<std::size_t>(r)]);
    pending.job = std::make_shared<LocalJob>(nodes, numbers_.of_group(ranks));
  }
  const std::shared_ptr<LocalJob> job = pending.job;
  if (++pending.joined == ranks.size()) groups_.erase(which);
  return job;
}

// All ranks of the node join one allocation, and the first one makes it.
std::shared_ptr<std::vector<std::byte>> LocalJob::join(int node, int ranks, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Gathering& gathering = gatherings_[node];
  if (gathering.joined == 0) gathering.memory = std::make_shared<std::vector<std::byte>>(bytes);
  SYNCLINE_CHECK(gathering.memory->size() == bytes);
  const auto memory = gathering.memory;
  if (++gathering.joined == ranks) gatherings_.erase(node);
  return memory;
}

void LocalJob::send(const Address& address, Letter letter) {
  const std::lock_guard lock(mutex_);
  letters_[address].push_back(std::move(letter));
}

bool LocalJob::receive(const Address& address, Letter& letter) {
  const std::lock_guard lock(mutex_);
  const auto found = letters_.find(address);
  if (found == letters_.end() || found->second.empty()) return false;
  letter = std::move(found->second.front());
  found->second.pop_front();
  return true;
}

bool LocalJob::has(const Address& address) const {
  const std::lock_guard lock(mutex_);
  const auto found = letters_.find(address);
  return found != letters_.end() && !found->second.empty();
}

}  // namespace syncline::comm
