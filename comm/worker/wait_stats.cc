#include "comm/worker/wait_stats.h"

#include <algorithm>
#include <utility>

#include "syncline/error.h"

namespace syncline::comm {
void Account::begin_wait(Wait& wait, const Job& job) {
  wait.event_ = event_of(job, "wait", "wait");
  wait.event_.begin = timeline::now();
  blocked_since_ = wait.event_.begin;
}

void Account::end_wait(Wait& wait) {
  wait.event_.end = timeline::now();
  blocked_since_ = 0;
  totals_.waited += wait.event_.end - wait.event_.begin;
  timeline::count_wait(wait.event_.end - wait.event_.begin);
  timeline::record(wait.event_);
}

void Account::count(const Job& job, const std::optional<Arrival>& last) {
  const std::int64_t end = timeline::now(), begin = std::exchange(arrived_, 0);
  const std::int64_t seen = std::exchange(met_, 0);
  const std::int64_t met = std::clamp(last ? last->time : seen != 0 ? seen : end, begin, end);
  const std::int64_t blocked = blocked_since_;
  const std::int64_t from = blocked == 0 ? end : std::clamp(blocked, begin, end);
  const std::int64_t late = std::max<std::int64_t>(met - from, 0);
  totals_.transfers += end - met;
  totals_.hidden += std::max(from, met) - met;
  totals_.for_others += late;
  if (last && late > 0) blame(job, last->rank, late);

  timeline::Event event = event_of(job, "transfer", name_of(job.kind));
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

void Account::blame(const Job& job, int rank, std::int64_t time) {
  for (Late& late : totals_.late) {
    const bool free = late.time == 0;
    if (free) late = {.rank = rank, .bucket = static_cast<std::int64_t>(job.header.bucket), .plan = job.header.plan};
    if (late.rank != rank || late.plan != job.header.plan ||
        late.bucket != static_cast<std::int64_t>(job.header.bucket))
      continue;
    late.names = job.header.names;
    late.time += time;
    return;
  }
}

timeline::Event Account::event_of(const Job& job, const char* category, const char* name) {
  timeline::Event event{.category = category, .name = name, .has_tag = true};
  event.bucket = static_cast<std::int64_t>(job.header.bucket);
  event.plan = job.header.plan;
  event.step = job.header.step;
  event.bytes = job.bytes;
  if (job.header.names != 0) {
    const std::lock_guard lock(names_mutex_);
    const char*& text = names_[job.header.names];
    if (text == nullptr) text = timeline::keep(names_of(job.header.names));
    event.what = text;
  }
  return event;
}

const char* Account::wait_name(int rank) {
  const auto i = static_cast<std::size_t>(rank);
  if (i >= wait_names_.size()) wait_names_.resize(i + 1);
  if (wait_names_[i] == nullptr) wait_names_[i] = timeline::keep(join_text("for rank ", rank));
  return wait_names_[i];
}

}  // namespace syncline::comm
