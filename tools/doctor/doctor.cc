// syncline doctor: whether a job started in this way would run well. Each rank checks itself; rank 0 prints.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/affinity.h"
#include "ops/kernels/parallel.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/launch.h"
#include "syncline/distributed/make_communicator.h"
#include "tools/command.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/report.h"

namespace syncline::tools {
namespace {

constexpr std::chrono::seconds kWaitLimit{60};                 // for the other ranks
constexpr std::int64_t kBucketBytes = std::int64_t{26} << 20;  // the first two buckets, unless keras.json changes them

struct Options {
  std::string folder;
  int threads = 0;
  bool json = false;
};

void append(Findings& all, Findings more) { all.insert(all.end(), more.begin(), more.end()); }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string read_all(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The checks that every rank makes before it meets the others.
RankReport look(const Options& options, const comm::Launch& launch) {
  const comm::Getenv getenv = [](const char* name) -> const char* { return std::getenv(name); };
  RankReport report;
  report.rank = launch.rank;
  report.host = host_name();
  report.processors = allowed_processors();
  report.threads = options.threads > 0 ? options.threads : thread_count();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Findings& found = report.findings;
  append(found, check_launch_environment(getenv, launch));
  append(found, check_scheduler(getenv, std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  append(found, check_processors(getenv, static_cast<int>(report.processors.size()), report.threads,
                                 processor_quota(read_all("/proc/self/cgroup"), "/sys/fs/cgroup")));
  if (launch.local_rank == 0) append(found, check_shared_memory("/dev/shm", launch.local_size, kBucketBytes));
  // Only rank 0 saves.
  if (launch.rank == 0 && !options.folder.empty()) append(found, check_folder(options.folder));
  append(found, check_limits(launch.size > launch.local_size));
  append(found, check_versions());
  report.common_simd = settings().simd == "common";
  append(found, check_settings());
  append(found, check_parts(settings().parts, std::max(launch.size, 1)));
  append(found, check_gpus(launch));
  return report;
}

// Gathers the texts of all ranks, in order.
std::vector<std::string> gather(comm::Communicator& communicator, const std::string& own) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<std::int64_t> lengths(ranks), each(ranks, sizeof(std::int64_t));
  const auto length = static_cast<std::int64_t>(own.size());
  communicator.wait(communicator.all_gather({}, &length, lengths.data(), each));
  std::int64_t total = 0;
  for (const std::int64_t n : lengths) total += n;
  std::string all(static_cast<std::size_t>(total), '\0');
  communicator.wait(communicator.all_gather({}, own.data(), all.data(), lengths));
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::int64_t n : lengths) {
    texts.push_back(all.substr(at, static_cast<std::size_t>(n)));
    at += static_cast<std::size_t>(n);
  }
  return texts;
}

// Returns the reports of all ranks. If the ranks cannot meet, returns only this rank's report, with the reason.
std::vector<RankReport> meet(RankReport own) {
  const bool badly_launched = std::any_of(own.findings.begin(), own.findings.end(), [](const Finding& finding) {
    return finding.level == Level::kFail && finding.about == "launch";
  });
  if (badly_launched) return {std::move(own)};
  try {
    comm::CommOptions options;
    options.worker.wait_limit = kWaitLimit;
    options.worker.background = false;
    options.format = settings().comm.wire_format.value_or(options.format);
    options.algorithms = settings().comm.algorithms.value_or(options.algorithms);
    options.transport = settings().comm.transport.value_or(comm::Transport::kAuto);
    const std::unique_ptr<comm::Communicator> communicator = comm::make_communicator(options);
    own.rank = communicator->rank();  // which need not be the launcher's
    own.findings.push_back({Level::kOk, "transport", communicator->describe(), ""});
    std::vector<RankReport> all;
    for (const std::string& text : gather(*communicator, to_text(own))) all.push_back(parse_report(text));
    return all;
  } catch (const std::exception& error) {
    own.findings.push_back(
        {Level::kFail, "transport", error.what(), "fix this first: no job can run on several ranks without it"});
    return {std::move(own)};
  }
}

int examine(const Options& options) {
  comm::Launch launch;
  RankReport own;
  try {
    launch = comm::read_launch_environment();
    own = look(options, launch);
  } catch (const CommError& error) {
    own.findings.push_back({Level::kFail, "launch", error.what(), "start the program from a fresh shell"});
  }
  const Diagnosis diagnosis = diagnose(meet(std::move(own)));
  if (launch.rank == 0) fmt::print("{}", options.json ? diagnosis.json() : diagnosis.text());
  return diagnosis.worst() == Level::kFail ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "doctor", "Check whether a job that is started in the same way can run well: mpirun -n 4 syncline doctor");
  const auto options = std::make_shared<Options>();
  command->add_option("--folder", options->folder, "Check this folder for checkpoints");
  command->add_option("--threads", options->threads, "Threads of a rank; 0: as many as its processors")
      ->check(not_negative());
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { end_with(examine(*options)); });
}

}  // namespace syncline::tools
