// TraceFile: one rank's timeline (syncline/timeline.h writes it), read back.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncline::tools {

struct TraceEvent {
  std::int64_t begin = 0, end = 0;  // ns; on rank 0's clock as far as the rank knows it
  std::string members;              // the rest of the event: "...}"
};

// How long this rank waited in the program for the others before one collective, and who they were.
struct TracedWait {
  std::string collective;    // what ranks have in common: plan, step, bucket, purpose, how often it came before
  std::int64_t arrived = 0;  // when this rank came, on rank 0's clock
  std::int64_t late = 0;     // how long its program waited for the last rank
  int last = -1;             // which is this one, if the rank knew; or else -1
};

// Where a rank's time went, in ns.
struct TracedTimes {
  std::int64_t steps = 0, in_steps = 0, waited = 0, transfers = 0, waited_for_transfers = 0;
};

struct TraceFile {
  std::string path;
  int rank = 0, ranks = 0;
  std::int64_t job = 0;
  std::string host;
  std::int64_t process = 0;
  std::int64_t clock_error = 0;           // ns
  std::int64_t left_out = 0;              // events that its memory did not hold
  bool complete = false;                  // the process came to its end
  nlohmann::ordered_json summary;         // what the ranks told each other at the end: in rank 0's file
  std::vector<std::string> descriptions;  // events about the rank rather than a time
  std::vector<TraceEvent> events;
  std::vector<TracedWait> waits;
  TracedTimes times;
};

// A last line that is not whole is left out. Throws IoError for a file that cannot be read, or is no timeline, with the
// line's number.
TraceFile read_trace_file(const std::string& path);

}  // namespace syncline::tools
