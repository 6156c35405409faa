#include "comm/local/virtual_job.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <tuple>
#include <utility>

#include "comm/local/local_job.h"
#include "comm/shared/node_wire.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

struct Letter {
  std::tuple<int, int, int> address;  // sender, receiver, channel
  std::size_t size = 0;
  std::vector<std::byte> bytes;
  double comes = 0;
};

// A rank can act, or (if `letter` is set) a letter reaches the link of its receiver.
struct Event {
  double time = 0;
  std::uint64_t number = 0;  // orders events at the same time
  int rank = 0;
  std::shared_ptr<Letter> letter;
  bool operator>(const Event& other) const { return std::tie(time, number) > std::tie(other.time, other.number); }
};

using Buffer = std::shared_ptr<std::vector<std::byte>>;

// The memory of all ranks of a job is one buffer, whose contents do not matter.
class OneBuffer : public NodeMemory {
 public:
  OneBuffer(Buffer& buffer, int ranks) : buffer_(buffer), ranks_(ranks) {}

  std::unique_ptr<Window> allocate(std::size_t bytes) override {
    if (!buffer_ || buffer_->size() < bytes) buffer_ = std::make_shared<std::vector<std::byte>>(bytes);
    return std::make_unique<Parts>(buffer_, ranks_);
  }

 private:
  struct Parts : Window {
    Parts(Buffer memory, int ranks) : buffer(std::move(memory)) {
      parts_.assign(static_cast<std::size_t>(ranks), buffer->data());
    }
    const Buffer buffer;
  };

  Buffer& buffer_;
  const int ranks_;
};

// A rank in a step.
struct Actor {
  std::span<const VirtualAction> actions;
  std::size_t next = 0;             // action
  std::optional<double> ends = {};  // its computation; none: it has not started
  bool has_begun = false;           // the action's collective
  std::vector<const Collective*> begun = {};
  std::size_t done = 0;        // of these
  bool in_collective = false;  // the wire is at work on the next one

  bool ended() const { return next == actions.size() && done == begun.size(); }
};

std::vector<std::vector<VirtualAction>> steps_of(std::span<const Collective> collectives) {
  std::vector<std::vector<VirtualAction>> steps;
  for (const Collective& collective : collectives) steps.push_back({{.begins = collective}});
  return steps;
}

}  // namespace

struct VirtualJob::State {
  explicit State(const VirtualOptions& o)
      : options(o), random(o.seed), job(std::make_shared<LocalJob>(o.node_of_rank)) {}

  const VirtualLink& link_of(int node) const {
    const auto own = options.links_of_nodes.find(node);
    return own == options.links_of_nodes.end() ? options.link : own->second;
  }
  double random_below(double most) { return std::uniform_real_distribution<double>(0, most)(random); }

  void add(double time, int rank, std::shared_ptr<Letter> letter = nullptr) {
    events.push({time, ++events_added, rank, std::move(letter)});
  }

  // Sends a message at the present time. Returns when it has left its sender.
  double send(int from, int to, int channel, const void* data, std::size_t size) {
    const VirtualLink &out = link_of(node_of(from)), &in = link_of(node_of(to));
    double& leaves = out_free[static_cast<std::size_t>(node_of(from))];
    const double begins = std::max(leaves, now) + out.overhead;
    leaves = begins + static_cast<double>(size) / out.bandwidth;
    double arrives = begins + std::max(out.latency, in.latency) + random_below(options.jitter);
    while (options.drops > 0 && random_below(1) < options.drops) arrives += options.resend;
    double& last = arrivals[{from, to, channel}];
    last = arrives = std::max(arrives, last);  // in order
    const auto* bytes = static_cast<const std::byte*>(data);
    const bool moves = !options.lengths_only || channel == kMeeting;
    add(arrives, to, std::make_shared<Letter>(Letter{{from, to, channel}, size, {bytes, bytes + (moves ? size : 0)}}));
    add(leaves, from);
    return leaves;
  }

  // The letter occupies the link of its receiver.
  void arrive(std::shared_ptr<Letter> letter) {
    const int to = std::get<1>(letter->address), from = std::get<0>(letter->address);
    const double bandwidth = std::min(link_of(node_of(to)).bandwidth, link_of(node_of(from)).bandwidth);
    double& busy = in_free[static_cast<std::size_t>(node_of(to))];
    letter->comes = busy = std::max(now, busy) + static_cast<double>(letter->size) / bandwidth;
    add(busy, to);
    letters[letter->address].push_back(std::move(*letter));
  }

  // The next message, if it has come.
  std::optional<Letter> receive(int from, int to, int channel) {
    const auto queue = letters.find({from, to, channel});
    if (queue == letters.end() || queue->second.empty() || queue->second.front().comes > now) return {};
    Letter letter = std::move(queue->second.front());
    queue->second.pop_front();
    return letter;
  }

  bool lives(std::size_t rank) const {
    const auto end = options.ends.find(static_cast<int>(rank));
    return end == options.ends.end() || now < end->second;
  }
  int node_of(int rank) const { return node_of_rank[static_cast<std::size_t>(rank)]; }

  // Does all that the rank can do now. Returns true if it did anything.
  bool advance(std::size_t r) {
    const bool acts = act(r);
    return transfer(r) || acts;
  }

  bool act(std::size_t r) {
    Actor& actor = actors[r];
    const std::size_t before = actor.next, begun = actor.begun.size();
    for (; actor.next < actor.actions.size(); ++actor.next, actor.ends.reset(), actor.has_begun = false) {
      const VirtualAction& action = actor.actions[actor.next];
      if (!actor.ends) {
        actor.ends = now + action.seconds;
        if (action.seconds > 0) add(*actor.ends, static_cast<int>(r));
      }
      if (now < *actor.ends) break;
      if (action.begins && !std::exchange(actor.has_begun, true)) actor.begun.push_back(&*action.begins);
      if (action.awaits >= static_cast<int>(actor.done)) break;
    }
    return actor.next != before || actor.begun.size() != begun;
  }

  bool transfer(std::size_t r) {
    Actor& actor = actors[r];
    if (actor.done == actor.begun.size()) return false;
    const Collective& collective = *actor.begun[actor.done];
    if (!std::exchange(actor.in_collective, true)) wires[r]->begin(collective);
    const Wire::Progress progress = wires[r]->poll(collective);
    if (progress != Wire::Progress::kDone) return progress == Wire::Progress::kMoving;
    actor.in_collective = false;
    ++actor.done;
    return true;
  }

  const VirtualOptions options;
  std::mt19937 random;
  const std::shared_ptr<LocalJob> job;
  Buffer buffer;                  // of ranks whose messages have no bytes
  std::vector<int> node_of_rank;  // numbered as in the topology
  std::vector<std::vector<int>> ranks_of_node;
  std::vector<std::unique_ptr<NodeWire>> wires;
  std::vector<Actor> actors;  // of the step
  double now = 0, begun = 0;  // seconds since this collective began; of all earlier ones
  std::uint64_t events_added = 0;
  std::vector<double> out_free, in_free;                            // by node: when its link is free
  std::map<std::tuple<int, int, int>, std::deque<Letter>> letters;  // by sender, receiver, channel
  std::map<std::tuple<int, int, int>, double> arrivals;             // of the last letter
  std::vector<std::deque<std::vector<std::byte>>> reports;          // by receiver
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
};

class VirtualNetwork : public Network {
 public:
  VirtualNetwork(VirtualJob::State& state, Topology topology)
      : state_(state), topology_(std::move(topology)), open_(static_cast<std::size_t>(channels_of(topology_))) {}

  void start(int channel, const Messages& messages) override {
    Open& open = open_[static_cast<std::size_t>(channel)];
    open.receives = messages.receives;
    open.sent = 0;
    for (const Messages::Outgoing& message : messages.sends)
      open.sent =
          state_.send(topology_.rank, peer_on(topology_, channel, message.node), channel, message.data, message.bytes);
  }

  bool test(int channel) override {
    Open& open = open_[static_cast<std::size_t>(channel)];
    std::erase_if(open.receives, [&](const Messages::Incoming& message) {
      const std::optional<Letter> letter =
          state_.receive(peer_on(topology_, channel, message.node), topology_.rank, channel);
      if (!letter) return false;
      SYNCLINE_CHECK(letter->bytes.size() <= message.bytes);
      if (!letter->bytes.empty()) std::memcpy(message.data, letter->bytes.data(), letter->bytes.size());
      ++moved_;
      return true;
    });
    return open.receives.empty() && open.sent <= state_.now;
  }

  bool has_come(int channel, int node) const override {
    const Open& open = open_[static_cast<std::size_t>(channel)];
    return std::ranges::none_of(open.receives, [&](const auto& message) { return message.node == node; });
  }

  void abandon() noexcept override {
    for (Open& open : open_) open.receives.clear();
  }

  std::uint64_t moved() const noexcept override { return moved_; }
  Moment now() const override {
    return Moment(std::chrono::duration_cast<Moment::duration>(
        std::chrono::hours(1) + std::chrono::duration<double>(state_.begun + state_.now)));
  }
  void post_note(std::uint64_t) override {}
  std::optional<std::uint64_t> take_note() override { return {}; }
  void post_report(std::span<const std::byte> report) override {
    for (int n = 0; n < topology_.node_count(); ++n)
      for (const int r : topology_.nodes[static_cast<std::size_t>(n)])
        if (n != topology_.node) state_.reports[static_cast<std::size_t>(r)].emplace_back(report.begin(), report.end());
  }
  bool take_report(std::vector<std::byte>& report) override {
    auto& come = state_.reports[static_cast<std::size_t>(topology_.rank)];
    if (come.empty()) return false;
    report = std::move(come.front());
    come.pop_front();
    return true;
  }
  bool close(bool, const std::function<Missing()>&) noexcept override { return true; }

 private:
  struct Open {
    std::vector<Messages::Incoming> receives;
    double sent = 0;  // when the last message has left
  };

  VirtualJob::State& state_;
  const Topology topology_;
  std::vector<Open> open_;
  std::uint64_t moved_ = 0;
};

VirtualJob::VirtualJob(const VirtualOptions& options) : state_(std::make_unique<State>(options)) {
  State& state = *state_;
  const int size = static_cast<int>(options.node_of_rank.size());
  for (int r = 0; r < size; ++r) state.node_of_rank.push_back(state.job->topology(r).node);
  state.ranks_of_node = state.job->topology(0).nodes;
  state.out_free.resize(state.ranks_of_node.size());
  state.in_free.resize(state.ranks_of_node.size());
  state.reports.resize(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) {
    const NodeWireOptions wire{.algorithms = options.algorithms, .staging_bytes = std::size_t{64} << 10};
    NodeParts parts{state.job->topology(r), nullptr, state.job->memory(r), nullptr};
    parts.control = parts.memory->allocate(NodeControl::bytes_a_rank(wire.staging_bytes / 2));
    parts.network = std::make_unique<VirtualNetwork>(state, parts.topology);
    if (options.lengths_only) parts.memory = std::make_unique<OneBuffer>(state.buffer, parts.topology.local_size());
    state.wires.push_back(std::make_unique<NodeWire>(std::move(parts), wire));
  }
}

VirtualJob::~VirtualJob() {
  for (const auto& wire : state_->wires) wire->close(true);
}

int VirtualJob::size() const { return static_cast<int>(state_->wires.size()); }

std::byte* VirtualJob::shared_memory(int rank) const {
  return state_->wires[static_cast<std::size_t>(rank)]->shared_memory();
}

double VirtualJob::run(std::span<const Collective> collectives) { return run(steps_of(collectives)); }

double VirtualJob::run(std::span<const std::vector<VirtualAction>> steps) {
  const double seconds = drive(steps);
  SYNCLINE_CHECK(std::ranges::all_of(state_->actors, &Actor::ended));
  return seconds;
}

std::map<int, std::string> VirtualJob::stall(std::span<const Collective> collectives) {
  const auto steps = steps_of(collectives);
  drive(steps);
  std::map<int, std::string> missing;
  for (int second = 0; second < 5; ++second, state_->now += 1)
    for (std::size_t r = 0; r < collectives.size(); ++r) {
      if (state_->actors[r].ended()) continue;
      state_->wires[r]->ask_around();
      state_->transfer(r);
      missing[static_cast<int>(r)] = state_->wires[r]->missing().text;
    }
  return missing;
}

// Returns the time at which the last rank has ended. The actors tell which living ranks have not.
double VirtualJob::drive(std::span<const std::vector<VirtualAction>> steps) {
  State& state = *state_;
  state.begun += std::exchange(state.now, 0);
  std::ranges::fill(state.out_free, 0);
  std::ranges::fill(state.in_free, 0);
  state.actors.assign(steps.size(), {});
  for (std::size_t r = 0; r < steps.size(); ++r) {
    if (!state.lives(r)) continue;
    state.actors[r].actions = steps[r];
    state.add(0, static_cast<int>(r));
  }
  double last = 0;
  for (; !state.events.empty(); state.events.pop()) {
    const Event next = state.events.top();
    state.now = next.time;
    if (next.letter != nullptr) {
      state.arrive(next.letter);
      continue;
    }
    const auto r = static_cast<std::size_t>(next.rank);
    bool moved = false;
    while (!state.actors[r].ended() && state.lives(r) && state.advance(r)) {
      moved = true;
      last = state.now;
    }
    if (!moved) continue;
    for (const int mate : state.ranks_of_node[static_cast<std::size_t>(state.node_of(next.rank))])
      if (mate != next.rank) state.add(state.now, mate);
  }
  for (std::size_t r = 0; r < steps.size(); ++r)
    if (!state.lives(r)) state.actors[r] = {};  // the dead wait for nothing
  state.arrivals.clear();
  return last;
}

}  // namespace syncline::comm
