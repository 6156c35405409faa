// syncline trace merge DIR: the timelines of a job's ranks, as one file on one clock.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "syncline/error.h"
#include "tools/command.h"
#include "tools/profiling/trace_file.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string directory, output;
};

void warn(const std::string& text) { fmt::print(stderr, "syncline: {}\n", text); }

bool is_trace_name(const std::string& name) {
  constexpr std::string_view kBegin = "rank", kEnd = ".json";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) return false;
  return std::all_of(name.begin() + kBegin.size(), name.end() - kEnd.size(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Reads the files of one job, ordered by rank: the job of rank 0's file, or of the lowest rank's.
std::vector<TraceFile> read_job(const std::string& directory) {
  std::error_code error;
  std::vector<TraceFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!is_trace_name(entry.path().filename().string())) continue;
    if (std::filesystem::is_empty(entry.path())) warn(entry.path().string() + " is empty and ignored");
    else files.push_back(read_trace_file(entry.path().string()));
  }
  if (error) fail<IoError>(directory, ": ", error.message());
  if (files.empty())
    fail<IoError>(directory, ": contains no timeline; SYNCLINE_TRACE=", directory, " writes rank*.json there");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::erase_if(files, [job = files.front().job](const TraceFile& file) {
    if (file.job != job) warn(file.path + " belongs to another job and is ignored");
    return file.job != job;
  });
  const auto ranks = static_cast<std::size_t>(files.front().ranks);
  if (files.size() < ranks)
    warn(fmt::format("{}: {} of {} ranks have no file", directory, ranks - files.size(), ranks));
  return files;
}

// waited[r][s]: how long rank r's program waited for rank s. If rank r could not know the last rank (on another
// machine), the aligned clocks decide.
std::map<int, std::map<int, std::int64_t>> waited_for(const std::vector<TraceFile>& files) {
  struct Last {
    int rank = -1;
    std::int64_t time = 0;
  };
  std::unordered_map<std::string_view, Last> last;
  for (const TraceFile& file : files)
    for (const TracedWait& wait : file.waits)
      if (Last& l = last[wait.collective]; l.rank < 0 || wait.arrived > l.time) l = {file.rank, wait.arrived};
  std::map<int, std::map<int, std::int64_t>> waited;
  for (const TraceFile& file : files)
    for (const TracedWait& wait : file.waits) {
      if (wait.late == 0) continue;
      const int blamed = wait.last >= 0 ? wait.last : last.at(wait.collective).rank;
      if (blamed != file.rank) waited[file.rank][blamed] += wait.late;
    }
  return waited;
}

Json metadata(const std::vector<TraceFile>& files) {
  const auto waited = waited_for(files);
  std::int64_t error = 0;
  Json ranks = Json::array(), summary;
  for (const TraceFile& file : files) {
    error = std::max(error, file.clock_error);
    if (!file.summary.is_null()) summary = file.summary;
    Json for_ranks = Json::object();
    if (const auto found = waited.find(file.rank); found != waited.end())
      for (const auto& [rank, time] : found->second) for_ranks[std::to_string(rank)] = time;
    const TracedTimes& t = file.times;
    ranks.push_back({{"rank", file.rank},
                     {"host", file.host},
                     {"process", file.process},
                     {"complete", file.complete},
                     {"events_left_out", file.left_out},
                     {"clock_error_ns", file.clock_error},
                     {"steps", t.steps},
                     {"in_steps_ns", t.in_steps},
                     {"transfers_ns", t.transfers},
                     {"hidden_ns", t.transfers - t.waited_for_transfers},
                     {"waited_ns", t.waited},
                     {"waited_for_rank_ns", std::move(for_ranks)}});
  }
  return {{"job", files.front().job},
          {"clock_error_ns", error},
          {"ranks", std::move(ranks)},
          {"summary", std::move(summary)}};
}

// Writes the events in the order of time; an event inside another one comes after it.
struct Written {
  std::size_t events = 0;
  std::int64_t time = 0;
};
Written write(const std::vector<TraceFile>& files, const Json& about, const std::string& path) {
  std::vector<const TraceEvent*> events;
  for (const TraceFile& file : files)
    for (const TraceEvent& event : file.events) events.push_back(&event);
  std::stable_sort(events.begin(), events.end(), [](const TraceEvent* a, const TraceEvent* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  const std::int64_t begin = events.empty() ? 0 : events.front()->begin;
  Written written{events.size()};
  std::ofstream out(path, std::ios::binary);
  out << "{\"displayTimeUnit\":\"ms\",\"metadata\":" << about.dump() << ",\n\"traceEvents\":[";
  const char* comma = "\n";
  for (const TraceFile& file : files)
    for (const std::string& line : file.descriptions) out << std::exchange(comma, ",\n") << line;
  for (const TraceEvent* event : events) {
    const std::int64_t at = event->begin - begin, length = event->end - event->begin;
    out << std::exchange(comma, ",\n")
        << fmt::format("{{\"ts\":{}.{:03},\"dur\":{}.{:03},", at / 1000, at % 1000, length / 1000, length % 1000)
        << event->members;
    written.time = std::max(written.time, event->end - begin);
  }
  out << "\n]}\n";
  if (!out.flush()) fail<IoError>(path, ": cannot write the file");
  return written;
}

void merge(Options options) {
  if (options.output.empty()) options.output = options.directory + "/merged.json";
  const std::vector<TraceFile> files = read_job(options.directory);
  const Json about = metadata(files);
  const Written written = write(files, about, options.output);
  fmt::print("{}: {} {}, {} events, {:.3f} s; clocks agree within {:.1f} us\n", options.output, files.size(),
             files.size() == 1 ? "rank" : "ranks", written.events, static_cast<double>(written.time) * 1e-9,
             about["clock_error_ns"].get<double>() * 1e-3);
  for (const TraceFile& file : files) {
    if (!file.complete) fmt::print("rank {} ended before its timeline was complete\n", file.rank);
    if (file.left_out > 0) fmt::print("rank {}: {} events did not fit into its memory\n", file.rank, file.left_out);
  }
  for (const Json& rank : about["ranks"]) {
    fmt::print("rank {} waited {:.3f} s", rank["rank"].get<int>(), rank["waited_ns"].get<double>() * 1e-9);
    const char* comma = ": ";
    for (const auto& [other, time] : rank["waited_for_rank_ns"].items())
      fmt::print("{}{:.3f} s for rank {}", std::exchange(comma, ", "), time.get<double>() * 1e-9, other);
    fmt::print("\n");
  }
}

}  // namespace

void add_trace(CLI::App& program) {
  CLI::App* trace = program.add_subcommand("trace", "Work with the timelines that SYNCLINE_TRACE writes");
  trace->require_subcommand(1);
  CLI::App* command = trace->add_subcommand("merge", "Put the timelines of a job's ranks into one file for Perfetto");
  const auto options = std::make_shared<Options>();
  command->add_option("DIR", options->directory, "The folder that SYNCLINE_TRACE named")->required();
  command->add_option("-o,--output", options->output, "The file to write [DIR/merged.json]");
  command->callback([options] { merge(*options); });
}

}  // namespace syncline::tools
