#include "comm/worker/wait_stats.h"

#include <algorithm>
#include <utility>

#include "syncline/error.h"

namespace syncline::comm {
void WaitStats::begin_wait(Wait& wait, const Collective& collective) {
  wait.event_ = event_of(collective, "wait", "wait");
  wait.event_.begin = timeline::now();
  blocked_since_ = wait.event_.begin;
}

void WaitStats::end_wait(Wait& wait) {
  wait.event_.end = timeline::now();
  blocked_since_ = 0;
  totals_.waited += wait.event_.end - wait.event_.begin;
  timeline::count_wait(wait.event_.end - wait.event_.begin);
  timeline::record(wait.event_);
}

void WaitStats::count(const Collective& collective, const std::optional<Arrival>& last) {
  const std::int64_t end = timeline::now(), begin = std::exchange(arrived_, 0);
  const std::int64_t seen = std::exchange(met_, 0);
  const std::int64_t met = std::clamp(last ? last->time : seen != 0 ? seen : end, begin, end);
  const std::int64_t blocked = blocked_since_;
  const std::int64_t from = blocked == 0 ? end : std::clamp(blocked, begin, end);
  const std::int64_t late = std::max<std::int64_t>(met - from, 0);
  totals_.transfers += end - met;
  totals_.hidden += std::max(from, met) - met;
  totals_.for_others += late;
  if (last && late > 0) blame(collective, last->rank, late);

  timeline::Event event = event_of(collective, "transfer", name_of(collective.kind));
  if (!row_) row_ = timeline::add_wire();
  event.row = *row_;
  event.begin = met;
  event.end = end;
  timeline::record(event);
  event.category = "arrival";
  event.name = "other ranks compute";
  if (last) event.for_rank = last->rank;
  event.begin = begin;
  event.end = met;
  if (met > begin) timeline::record(event);
  event.row = timeline::Row::kProgram;
  event.category = "wait";
  event.name = last ? wait_name(last->rank) : "for other ranks";
  event.begin = from;
  if (late > 0) timeline::record(event);
  event.name = "for the transfer";
  event.for_rank = -1;
  event.begin = std::max(from, met);
  event.end = end;
  if (blocked != 0) timeline::record(event);
}

void WaitStats::blame(const Collective& collective, int rank, std::int64_t time) {
  for (Late& late : totals_.late) {
    const bool free = late.time == 0;
    if (free)
      late = {
          .rank = rank, .bucket = static_cast<std::int64_t>(collective.header.bucket), .plan = collective.header.plan};
    if (late.rank != rank || late.plan != collective.header.plan ||
        late.bucket != static_cast<std::int64_t>(collective.header.bucket))
      continue;
    late.names = collective.header.names;
    late.time += time;
    return;
  }
}

timeline::Event WaitStats::event_of(const Collective& collective, const char* category, const char* name) {
  timeline::Event event{.category = category, .name = name, .has_tag = true};
  event.bucket = static_cast<std::int64_t>(collective.header.bucket);
  event.plan = collective.header.plan;
  event.step = collective.header.step;
  event.bytes = collective.bytes;
  if (collective.header.names != 0) {
    const std::lock_guard lock(names_mutex_);
    const char*& text = names_[collective.header.names];
    if (text == nullptr) text = timeline::keep(names_of(collective.header.names));
    event.what = text;
  }
  return event;
}

const char* WaitStats::wait_name(int rank) {
  const auto i = static_cast<std::size_t>(rank);
  if (i >= wait_names_.size()) wait_names_.resize(i + 1);
  if (wait_names_[i] == nullptr) wait_names_[i] = timeline::keep(join_text("for rank ", rank));
  return wait_names_[i];
}

}  // namespace syncline::comm
