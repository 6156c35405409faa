// WaitStats: where a rank's time on one wire went: the time of transfers, how much of it the computation hid, how long
// the program waited, and for which rank. It also records the wire's events (syncline/timeline.h).
//
// A worker owns it and reports to it. All calls do nothing while the timeline is off. Threads: the holder of the wire's
// lock calls arrive, agree and finish. The communicator's caller uses Wait, and totals while nothing is under way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "comm/worker/collective.h"
#include "syncline/timeline.h"

namespace syncline::comm {

// The last rank to arrive at a collective, and its time on timeline::now()'s clock.
struct Arrival {
  int rank = 0;
  std::int64_t time = 0;
};

class WaitStats {
 public:
  // Time that the program waited for one rank before one collective of a plan.
  struct Late {
    std::int64_t rank = 0, time = 0, bucket = 0;
    std::uint64_t plan = 0, names = 0;
  };
  static constexpr std::size_t kMostLate = 64;

  struct Totals {
    std::int64_t transfers = 0;          // from the last arrival to the end, in ns
    std::int64_t hidden = 0;             // part of it during which the program did other work
    std::int64_t waited = 0;             // by the program, for transfers and for late ranks
    std::int64_t for_others = 0;         // part of it for late ranks
    std::array<Late, kMostLate> late{};  // for_others by rank and collective, as far as known
  };

  void arrive() {
    if (timeline::on()) arrived_ = timeline::now();
  }
  void agree() {
    if (arrived_ != 0 && met_ == 0) met_ = timeline::now();
  }
  // `last`: empty if the wire does not know. Then no rank is blamed, and a collective without agree() counts as
  // all waiting.
  void finish(const Collective& collective, const std::optional<Arrival>& last) {
    if (arrived_ != 0) count(collective, last);
  }

  // Measures the time that the caller is blocked for a collective.
  class Wait {
   public:
    Wait(WaitStats& stats, const Collective& collective) : stats_(stats) {
      if (timeline::on()) stats.begin_wait(*this, collective);
    }
    ~Wait() {
      if (event_.begin != 0) stats_.end_wait(*this);
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    friend class WaitStats;
    WaitStats& stats_;
    timeline::Event event_;
  };

  const Totals& totals() const { return totals_; }

 private:
  void begin_wait(Wait& wait, const Collective& collective);
  void end_wait(Wait& wait);
  void count(const Collective& collective, const std::optional<Arrival>& last);
  void blame(const Collective& collective, int rank, std::int64_t time);
  timeline::Event event_of(const Collective& collective, const char* category, const char* name);
  const char* wait_name(int rank);

  std::optional<timeline::Row> row_;  // set at the first collective
  std::int64_t arrived_ = 0, met_ = 0;
  std::atomic<std::int64_t> blocked_since_ = 0;  // 0: the caller computes
  Totals totals_;
  std::mutex names_mutex_;  // guards names_
  std::unordered_map<std::uint64_t, const char*> names_;
  std::vector<const char*> wait_names_;
};

}  // namespace syncline::comm
