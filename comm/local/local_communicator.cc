#include "comm/local/local_communicator.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>

namespace syncline::comm {
namespace {

// Where the ranks meet. A collective has two rounds: all bring their job, then each rank does its part of the work, on
// everybody's buffers; it is finished when all parts are. Counters only grow, so a fast rank may be one job ahead.
struct Hub {
  explicit Hub(int size) : jobs(size), arrived(size, 0), worked(size, 0), left(size, false), notes(size) {}

  std::shared_mutex buffers;  // held shared by who works on the ranks' buffers, alone by who takes its own away
  std::mutex mutex;           // guards what follows; the buffers behind the jobs are ordered by it too
  std::vector<Job> jobs;
  std::vector<std::uint64_t> arrived, worked;  // by rank: how many jobs it brought, how many parts it has done
  std::vector<bool> left;
  std::vector<std::deque<std::uint64_t>> notes;  // by rank, those it has not taken
};

// Integers are added without sign, so that they wrap as MPI's do.
template <class T>
T combine(Reduce reduce, T a, T b) {
  if (reduce == Reduce::kMax) return std::max(a, b);
  if (reduce == Reduce::kMin) return std::min(a, b);
  if constexpr (std::is_floating_point_v<T>) return a + b;
  else return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Element range [begin, end) of `rank`'s part of `count` elements.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count, int rank, int size) {
  const std::int64_t each = count / size, rest = count % size;
  const std::int64_t begin = rank * each + std::min<std::int64_t>(rank, rest);
  return {begin, begin + each + (rank < rest ? 1 : 0)};
}

void reduce_part(const std::vector<Job>& jobs, int rank) {
  const Job& mine = jobs[rank];
  const auto [begin, end] = part_of(mine.count, rank, static_cast<int>(jobs.size()));
  if (mine.dtype == DType::kBool) fail<InternalError>("all_reduce: bool has no reduction");
  with_dtype(mine.dtype, [&, first = begin, last = end]<class T>(T) {
    for (std::int64_t i = first; i < last; ++i) {
      T total = static_cast<const T*>(jobs[0].data)[i];
      for (std::size_t r = 1; r < jobs.size(); ++r)
        total = combine(mine.reduce, total, static_cast<const T*>(jobs[r].data)[i]);
      for (const Job& job : jobs) static_cast<T*>(job.data)[i] = total;
    }
  });
}

void gather_part(const std::vector<Job>& jobs, int rank) {
  std::int64_t offset = 0;
  for (int r = 0; r < rank; ++r) offset += jobs[rank].byte_counts[r];
  const auto bytes = static_cast<std::size_t>(jobs[rank].byte_counts[rank]);
  if (bytes == 0) return;
  for (const Job& job : jobs) {
    std::byte* place = static_cast<std::byte*>(job.data) + offset;
    if (place != jobs[rank].send) std::memcpy(place, jobs[rank].send, bytes);
  }
}

void broadcast_part(const std::vector<Job>& jobs, int rank) {
  const Job& mine = jobs[rank];
  if (rank != mine.root && mine.bytes > 0)
    std::memcpy(mine.data, jobs[mine.root].data, static_cast<std::size_t>(mine.bytes));
}

class LocalWire : public Wire {
 public:
  LocalWire(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_->jobs.size()); }

  void begin(const Job& job) override {
    const std::lock_guard lock(hub_->mutex);
    hub_->jobs[rank_] = job;
    hub_->arrived[rank_] = ++round_;
    did_part_ = false;
  }

  Meeting poll(const Job& job) override {
    if (!did_part_) {
      if (!all_reached(hub_->arrived)) return Meeting::kWaiting;
      check_agreement();
      if (job.bytes > kSmallBytes) return Meeting::kReady;
      do_part();
    }
    return all_reached(hub_->worked) ? Meeting::kDone : Meeting::kWaiting;
  }

  void transfer(const Job&) override {
    do_part();
    while (!all_reached(hub_->worked)) std::this_thread::yield();
  }

  void post_note(std::uint64_t note) override {
    const std::lock_guard lock(hub_->mutex);
    for (int r = 1; rank_ == 0 && r < size(); ++r) hub_->notes[r].push_back(note);
  }

  std::optional<std::uint64_t> take_note() override {
    const std::lock_guard lock(hub_->mutex);
    auto& notes = hub_->notes[rank_];
    if (notes.empty()) return {};
    const std::uint64_t note = notes.front();
    notes.pop_front();
    return note;
  }

  std::string name_missing() const override {
    const std::lock_guard lock(hub_->mutex);
    std::string names;
    for (int r = 0; r < size(); ++r)
      if (hub_->arrived[r] < round_) names += join_text(names.empty() ? "rank " : ", rank ", r);
    return names.empty() ? names : names + " has not called it";
  }

  void withdraw() noexcept override {
    const std::lock_guard alone(hub_->buffers);
    const std::lock_guard lock(hub_->mutex);
    hub_->left[rank_] = true;
  }

  void close(bool) noexcept override { withdraw(); }

 private:
  // Throws if a rank that has not come this far will never come.
  bool all_reached(const std::vector<std::uint64_t>& counters) const {
    const std::lock_guard lock(hub_->mutex);
    bool all = true;
    for (int r = 0; r < size(); ++r) {
      if (counters[r] >= round_) continue;
      if (hub_->left[r]) fail_without(r);
      all = false;
    }
    return all;
  }

  [[noreturn]] void fail_without(int missing) const {
    fail<CommError>("rank ", rank_, " waits for ", describe(hub_->jobs[rank_].header), ", but rank ", missing,
                    " has left the job; see its own error");
  }

  // Nobody has finished the job before this rank has done its part, so a rank that left has given it up.
  void check_nobody_left() const {
    const std::lock_guard lock(hub_->mutex);
    for (int r = 0; r < size(); ++r)
      if (hub_->left[r]) fail_without(r);
  }

  void check_agreement() const {
    const std::lock_guard lock(hub_->mutex);
    const auto same = [&](const Job& job) { return job.header == hub_->jobs[0].header; };
    if (std::all_of(hub_->jobs.begin(), hub_->jobs.end(), same)) return;
    std::vector<Header> headers;
    for (const Job& job : hub_->jobs) headers.push_back(job.header);
    fail<DisagreementError>(describe_mismatch(headers));
  }

  // All jobs stand still until every rank has done its part, so they are read without the lock.
  void do_part() {
    const std::shared_lock working(hub_->buffers);
    check_nobody_left();
    switch (hub_->jobs[rank_].kind) {
      case Kind::kAllReduce: reduce_part(hub_->jobs, rank_); break;
      case Kind::kAllGather: gather_part(hub_->jobs, rank_); break;
      case Kind::kBroadcast: broadcast_part(hub_->jobs, rank_); break;
    }
    did_part_ = true;
    const std::lock_guard lock(hub_->mutex);
    hub_->worked[rank_] = round_;
  }

  const std::shared_ptr<Hub> hub_;
  const int rank_;
  std::uint64_t round_ = 0;
  bool did_part_ = false;
};

}  // namespace

std::vector<std::unique_ptr<Wire>> make_local_wires(int size) {
  if (size < 1) fail("make_local_wires: ", size, " ranks; there must be at least one");
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Wire>> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<LocalWire>(hub, r));
  return ranks;
}

std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size, std::chrono::duration<double> limit) {
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (std::unique_ptr<Wire>& wire : make_local_wires(size))
    ranks.push_back(std::make_unique<WorkerCommunicator>(std::move(wire), WorkerOptions{.wait_limit = limit}));
  return ranks;
}

void spawn_ranks(int size, const std::function<void(Communicator&)>& body, std::chrono::duration<double> limit) {
  auto ranks = make_local_communicators(size, limit);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run_rank = [&](std::unique_ptr<Communicator> rank) {
    try {
      body(*rank);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (auto& rank : ranks) threads.emplace_back(run_rank, std::move(rank));
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace syncline::comm
