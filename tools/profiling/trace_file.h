// TraceFile: one rank's timeline, read from a file that syncline/timeline.h wrote.
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

// How long this rank's program waited for the other ranks before one collective.
struct TracedWait {
  std::string collective;    // equal on all ranks: plan, step, bucket, purpose, and how often it came before
  std::int64_t arrived = 0;  // when this rank arrived, on rank 0's clock
  std::int64_t late = 0;     // how long its program waited for the last rank
  int last = -1;             // the last rank (possibly this one); -1: this rank does not know
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
  std::int64_t left_out = 0;              // events that did not fit into its memory
  bool complete = false;                  // the process came to its end
  nlohmann::ordered_json summary;         // the ranks' common summary; only in rank 0's file
  std::vector<std::string> descriptions;  // events that describe the rank, without a time
  std::vector<TraceEvent> events;
  std::vector<TracedWait> waits;
  TracedTimes times;
};

// Ignores an incomplete last line. Throws IoError for a file that cannot be read or is not a timeline, with the number
// of the line.
TraceFile read_trace_file(const std::string& path);

}  // namespace syncline::tools
