// syncline profile FILE...: the time of each kind of step, beside what the machine can do.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "syncline/error.h"
#include "tools/command.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::json;

struct Options {
  std::vector<std::string> files;
  std::string by = "kind";
  std::size_t top = 20;
};

struct Row {
  std::string name;
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double least = 0;     // seconds that the machine's limits allow for the flops and bytes
  double measured = 0;  // seconds of the calls with flops or bytes
};

// The first line of a file.
struct About {
  int rank = 0, ranks = 0, threads = 0;
  std::string instruction_set;
  double flops_per_second = 0, bytes_per_second = 0;
};

struct Profile {
  About about;
  std::vector<Row> plans, rows;  // the longest first
  double seconds = 0;
};

Row& row_named(const std::string& name, std::map<std::string, Row>& rows) {
  Row& row = rows[name];
  row.name = name;
  return row;
}

About read_about(const std::string& path, const Json& line) {
  if (const Json& format = line.at("format"); format != 1 && format != 2)
    fail<IoError>(path, ": has a format that this version does not know");
  About about{line.at("rank"),
              line.at("ranks"),
              line.at("threads"),
              line.at("instruction_set"),
              line.at("flops_per_second"),
              line.at("bytes_per_second")};
  for (const double limit : {about.flops_per_second, about.bytes_per_second})
    if (!(limit > 0) || !std::isfinite(limit))
      fail<IoError>(path, ": line 1 is not of a profile: a limit is ", limit, "; it must be positive");
  return about;
}

void add(const About& about, const Json& line, Row& row) {
  const double seconds = line.at("seconds"), flops = line.at("flops"), bytes = line.at("bytes");
  row.calls += line.at("calls").get<double>();
  row.seconds += seconds;
  row.flops += flops;
  row.bytes += bytes;
  const double least = std::max(flops / about.flops_per_second, bytes / about.bytes_per_second);
  row.least += least;
  if (least > 0) row.measured += seconds;
}

Profile read(const std::string& path, const std::string& by) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    fail<IoError>(path, ": is a folder; give the file that SYNCLINE_PROFILE named");
  std::ifstream in(path);
  if (!in) fail<IoError>(path, ": cannot read the file");
  Profile profile;
  std::map<std::string, Row> rows;
  if (in.peek() == std::ifstream::traits_type::eof()) fail<IoError>(path, ": is empty; a profile has a first line");
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) try {
      const Json line = Json::parse(text);
      if (number == 1) {
        profile.about = read_about(path, line);
        continue;
      }
      if (line.contains("plan")) {
        add(profile.about, line, profile.plans.emplace_back(Row{.name = line.at("plan")}));
        continue;
      }
      const std::string name = line.at(by);
      add(profile.about, line, row_named(name.empty() ? "(no layer)" : name, rows));
    } catch (const Json::exception& error) {
      fail<IoError>(path, ": line ", number, " is not of a profile: ", error.what());
    }
  for (auto& [name, row] : rows) profile.rows.push_back(std::move(row));
  for (std::vector<Row>* longest : {&profile.plans, &profile.rows})
    std::stable_sort(longest->begin(), longest->end(),
                     [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  for (const Row& row : profile.rows) profile.seconds += row.seconds;
  return profile;
}

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.2f}", amount / seconds * 1e-9) : "-";
}

std::string share(const Row& row) { return row.measured > 0 ? fmt::format("{:.2f}", row.least / row.measured) : "-"; }

// Those that take a hundredth of the time.
void print_plans(const std::vector<Row>& plans, double seconds) {
  fmt::print("{:>10} {:>9} {:>10} {:>9} {:>8}  plan\n", "seconds", "runs", "ms a run", "least ms", "of limit");
  for (const Row& plan : plans)
    if (plan.seconds >= 0.01 * seconds)
      fmt::print("{:>10.4f} {:>9.0f} {:>10.3f} {:>9.3f} {:>8}  {}\n", plan.seconds, plan.calls,
                 1e3 * plan.seconds / plan.calls, 1e3 * plan.least / plan.calls, share(plan), plan.name);
  fmt::print("\n");
}

void print(const Profile& profile, const Options& options) {
  const About& about = profile.about;
  fmt::print("rank {} of {}, {} threads, {}; limits {:.1f} Gflop/s and {:.1f} GB/s; {:.3f} s in steps\n", about.rank,
             about.ranks, about.threads, about.instruction_set, about.flops_per_second * 1e-9,
             about.bytes_per_second * 1e-9, profile.seconds);
  if (!profile.plans.empty()) print_plans(profile.plans, profile.seconds);
  fmt::print("{:>10} {:>6} {:>9} {:>9} {:>8} {:>8}  {}\n", "seconds", "%", "calls", "Gflop/s", "GB/s", "of limit",
             options.by);
  const std::size_t count = options.top == 0 ? profile.rows.size() : std::min(options.top, profile.rows.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Row& row = profile.rows[i];
    fmt::print("{:>10.4f} {:>6.1f} {:>9.0f} {:>9} {:>8} {:>8}  {}\n", row.seconds,
               profile.seconds > 0 ? 100 * row.seconds / profile.seconds : 0, row.calls, rate(row.flops, row.seconds),
               rate(row.bytes, row.seconds), share(row), row.name);
  }
  if (count < profile.rows.size()) fmt::print("{} more; --top 0 prints all\n", profile.rows.size() - count);
}

void run(const Options& options) {
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    if (i > 0) fmt::print("\n");
    print(read(options.files[i], options.by), options);
  }
}

}  // namespace

void add_profile(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("profile", "Shows where the time of a run with SYNCLINE_PROFILE went");
  command->add_option("file", options->files, "Files that SYNCLINE_PROFILE named")->required();
  command->add_option("--by", options->by, "What a row sums: kind, layer or what (each step with its shapes)")
      ->check(CLI::IsMember({"kind", "layer", "what"}));
  command->add_option("--top", options->top, "Rows to print; 0: all");
  command->callback([options] { run(*options); });
}

}  // namespace syncline::tools
