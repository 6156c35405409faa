#include "comm/worker/trace.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/worker/clocks.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline::comm {
namespace {

// The traced communicator: the first one of all ranks, never that of a group.
std::atomic<const Communicator*> traced{nullptr};
std::int64_t traced_since = 0;

std::string members(const ClockOffset& clock) {
  return join_text("\"at_ns\":", clock.at, ",\"offset_ns\":", clock.offset, ",\"error_ns\":", clock.error);
}

// Where one rank's time went, in ns. The ranks exchange it at the end.
struct Report {
  static constexpr std::size_t kMostLate = 8;

  std::int64_t steps = 0, elapsed = 0;
  std::int64_t compute = 0, between = 0;  // without the time spent waiting
  std::int64_t transfers = 0, hidden = 0, waited = 0, for_others = 0;
  std::array<WaitStats::Late, kMostLate> late{};  // the largest
};

Report own_report(const WaitStats* stats) {
  const timeline::Times& times = timeline::times();
  Report report;
  report.steps = times.steps;
  report.elapsed = timeline::now() - traced_since;
  report.compute = times.in_steps - times.waited_in_steps;
  report.between = times.between_steps - times.waited_between;
  if (stats == nullptr) return report;
  const WaitStats::Totals& totals = stats->totals();
  report.transfers = totals.transfers;
  report.hidden = totals.hidden;
  report.waited = totals.waited;
  report.for_others = totals.for_others;
  std::array<WaitStats::Late, WaitStats::kMostLate> late = totals.late;
  std::sort(late.begin(), late.end(), [](const auto& a, const auto& b) { return a.time > b.time; });
  std::copy_n(late.begin(), Report::kMostLate, report.late.begin());
  return report;
}

std::vector<Report> gather_reports(Communicator& communicator, const Report& own) {
  std::vector<Report> all(static_cast<std::size_t>(communicator.size()));
  const std::vector<std::int64_t> bytes(all.size(), sizeof own);
  const Tag tag{.names = remember_names("where the ranks' time went")};
  communicator.wait(communicator.all_gather(tag, &own, all.data(), bytes));
  return all;
}

// The rank that the others waited for most, and the collective before which they waited most.
struct Straggler {
  std::int64_t rank = -1;
  std::int64_t time = 0;  // sum over all other ranks
  WaitStats::Late mostly;
};

Straggler find_straggler(const std::vector<Report>& reports) {
  std::map<std::int64_t, Straggler> by_rank;
  std::map<std::pair<std::int64_t, std::pair<std::uint64_t, std::int64_t>>, std::int64_t> by_place;
  Straggler worst;
  for (const Report& report : reports)
    for (const WaitStats::Late& late : report.late) {
      if (late.time == 0) continue;
      Straggler& straggler = by_rank[late.rank];
      straggler.rank = late.rank;
      straggler.time += late.time;
      std::int64_t& here = by_place[{late.rank, {late.plan, late.bucket}}];
      here += late.time;
      if (here >= straggler.mostly.time) {
        straggler.mostly = late;
        straggler.mostly.time = here;
      }
      if (straggler.time > worst.time) worst = straggler;
    }
  return worst.rank < 0 ? worst : by_rank.at(worst.rank);
}

// What a rank takes longer for than the fastest rank, if that explains most of `time`; otherwise null.
const char* surplus(const std::vector<Report>& reports, std::int64_t rank, std::int64_t time) {
  const Report& own = reports[static_cast<std::size_t>(rank)];
  std::int64_t compute = own.compute, between = own.between;
  for (const Report& report : reports) {
    compute = std::min(compute, report.compute);
    between = std::min(between, report.between);
  }
  compute = own.compute - compute;
  between = own.between - between;
  if (2 * std::max(compute, between) < time) return nullptr;
  return compute >= between ? "computation" : "work between steps";
}

std::string seconds(std::int64_t nanoseconds) {
  const double time = static_cast<double>(nanoseconds) * 1e-9;
  char text[32];
  if (time < 1) std::snprintf(text, sizeof text, "%.3g ms", time * 1e3);
  else std::snprintf(text, sizeof text, time < 10 ? "%.2f s" : "%.1f s", time);
  return text;
}

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::int64_t mean(const std::vector<Report>& reports, std::int64_t Report::*time) {
  std::int64_t sum = 0;
  for (const Report& report : reports) sum += report.*time;
  return sum / static_cast<std::int64_t>(reports.size());
}

std::string verdict(const std::vector<Report>& reports) {
  const Straggler straggler = find_straggler(reports);
  const auto waited_less = [](const Report& a, const Report& b) { return a.for_others < b.for_others; };
  const auto [least, most] = std::minmax_element(reports.begin(), reports.end(), waited_less);
  std::string text = join_text("rank ", most - reports.begin(), " waited longest, ", seconds(most->waited), ", ",
                               seconds(most->for_others), " of this for other ranks");
  std::int64_t rank = straggler.rank;
  if (rank >= 0) {
    text +=
        join_text("; ranks waited most for rank ", rank, ", ", seconds(straggler.time), " in total, mostly before ");
    const bool bucket = straggler.mostly.bucket < std::int64_t{1} << 30;  // false: a message of its own
    if (bucket || straggler.mostly.names == 0) text += join_text("bucket ", straggler.mostly.bucket);
    if (straggler.mostly.names != 0)
      text += (bucket ? " (" : "") + names_of(straggler.mostly.names) + (bucket ? ")" : "");
  } else if (2 * least->for_others < most->for_others) {
    rank = least - reports.begin();
    text += join_text("; rank ", rank, " waited least, ", seconds(least->for_others));
  }
  if (rank < 0) return text;
  if (const char* what = surplus(reports, rank, most->for_others)) text += join_text("; its ", what, " takes longer");
  return text;
}

// The summary that rank 0 prints: one line.
std::string summary(const std::vector<Report>& reports, int ranks) {
  const auto elapsed = std::max_element(reports.begin(), reports.end(),
                                        [](const Report& a, const Report& b) { return a.elapsed < b.elapsed; });
  std::string text = join_text(with_commas(elapsed->steps), elapsed->steps == 1 ? " step" : " steps", " in ",
                               seconds(elapsed->elapsed));
  if (ranks == 1) return text + join_text(", ", seconds(elapsed->between), " of this between steps");
  text += join_text(" on ", ranks, " ranks: transfers ", seconds(mean(reports, &Report::transfers)), " per rank, ",
                    seconds(mean(reports, &Report::hidden)), " of this hidden behind computation; ");
  if (reports.size() == 1)
    return text + join_text("rank 0 waited ", seconds(reports[0].waited), " (the other ranks did not report)");
  return text + verdict(reports);
}

std::string members(const std::vector<Report>& reports, const std::string& text) {
  std::string all = "\"text\":\"" + timeline::escaped(text) + "\",\"ranks\":[";
  for (std::size_t r = 0; r < reports.size(); ++r)
    all += join_text(r == 0 ? "" : ",", "{\"steps\":", reports[r].steps, ",\"elapsed_ns\":", reports[r].elapsed,
                     ",\"compute_ns\":", reports[r].compute, ",\"between_steps_ns\":", reports[r].between,
                     ",\"transfers_ns\":", reports[r].transfers, ",\"hidden_ns\":", reports[r].hidden,
                     ",\"waited_ns\":", reports[r].waited, ",\"waited_for_ranks_ns\":", reports[r].for_others, '}');
  all += ']';
  if (const Straggler straggler = find_straggler(reports); straggler.rank >= 0)
    all += join_text(",\"straggler\":{\"rank\":", straggler.rank, ",\"waited_for_ns\":", straggler.time,
                     ",\"bucket\":", straggler.mostly.bucket, '}');
  return all;
}

}  // namespace

void begin_trace(Communicator& communicator) {
  const char* directory = std::getenv("SYNCLINE_TRACE");
  const Communicator* nobody = nullptr;
  if (directory == nullptr || *directory == '\0' || !traced.compare_exchange_strong(nobody, &communicator)) return;
  const char* detail = std::getenv("SYNCLINE_TRACE_DETAIL");
  std::int64_t job = timeline::now();  // tells this job's files from others in the folder
  try {
    const Tag tag{.names = remember_names("the name of the job's timeline")};
    communicator.wait(communicator.broadcast(tag, &job, sizeof job, 0));
    const ClockOffset clock = measure_clock(communicator, timeline::now);
    timeline::start(directory, communicator.rank(), communicator.size(),
                    join_text("\"job\":", job, ',', members(clock)));
  } catch (...) {
    traced = nullptr;  // there is no timeline to end
    throw;
  }
  traced_since = timeline::now();
  timeline::detail = detail != nullptr && detail != std::string_view("0");
}

void end_trace(Communicator& communicator, const WaitStats* stats, bool clean) noexcept {
  const Communicator* own = &communicator;
  if (!traced.compare_exchange_strong(own, nullptr)) return;
  try {
    std::vector<Report> reports{own_report(stats)};
    timeline::recording = false;  // the calls below are not part of the program
    if (clean && communicator.size() > 1) {
      try {
        reports = gather_reports(communicator, reports[0]);
        timeline::describe("clock", members(measure_clock(communicator, timeline::now)));
      } catch (const CommError&) {  // another rank did not end cleanly
      }
    }
    if (communicator.rank() == 0) {
      const std::string text = summary(reports, communicator.size());
      timeline::describe("summary", members(reports, text));
      std::fprintf(stderr, "syncline: %s\n", text.c_str());
    }
    timeline::recording = true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "syncline: cannot write the timeline's summary: %s\n", error.what());
  }
}

}  // namespace syncline::comm
