#include "tools/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/printable.h"
#include "runtime/placement/agreement.h"
#include "tools/doctor/checks.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Level level) {
  switch (level) {
    case Level::kOk: return "ok";
    case Level::kWarn: return "warn";
    default: return "fail";
  }
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

void add(std::vector<Diagnosis::Line>& lines, const Finding& finding, int rank) {
  const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.finding == finding; });
  if (same == lines.end()) lines.push_back({finding, {rank}});
  else same->ranks.push_back(rank);
}

// Fails on what differs: ranks would end with exit code 65 at their first step.
void compare_versions(std::vector<Diagnosis::Line>& lines, std::span<const RankReport> reports) {
  const bool common =
      std::any_of(reports.begin(), reports.end(), [](const auto& report) { return report.common_simd; });
  for (Diagnosis::Line& line : lines) {
    const bool is_compared = line.finding.about == "versions" || (line.finding.about == kInstructions && !common);
    if (!is_compared || line.ranks.size() >= reports.size()) continue;
    if (line.finding.level != Level::kFail) line.finding.advice = advice_on_difference(line.finding.text);
    line.finding.level = Level::kFail;
  }
}

// The ranks of one host.
struct Host {
  std::vector<int> ranks;
  std::set<int> processors;
  int threads = 0;
};

void compare_processors(std::vector<Diagnosis::Line>& lines, std::span<const RankReport> reports) {
  std::map<std::string, Host> hosts;
  for (const RankReport& report : reports) {
    Host& host = hosts[report.host];
    host.ranks.push_back(report.rank);
    host.processors.insert(report.processors.begin(), report.processors.end());
    host.threads += report.threads;
  }
  for (const auto& [name, host] : hosts) {
    const int processors = static_cast<int>(host.processors.size()), ranks = static_cast<int>(host.ranks.size());
    const std::string text =
        fmt::format("host {}: ranks {}, threads {}, processors {}", name, ranks, host.threads, processors);
    if (host.threads <= processors) {
      lines.push_back({{Level::kOk, "processors", text, ""}, host.ranks});
      continue;
    }
    const int share = processors / ranks;
    const std::string advice =
        share == 0 ? "start fewer ranks on this host"
                   : fmt::format(
                         "give each rank processors and threads of its own: mpirun --map-by slot:PE={0} --bind-to "
                         "core, or with MPICH mpiexec -bind-to core:{0}",
                         share);
    lines.push_back({{Level::kWarn, "processors", text, advice}, host.ranks});
  }
}

}  // namespace

std::string to_text(const RankReport& report) {
  Json json{{"rank", report.rank},
            {"host", report.host},
            {"processors", report.processors},
            {"threads", report.threads},
            {"common_simd", report.common_simd},
            {"findings", Json::array()}};
  for (const Finding& f : report.findings)
    json["findings"].push_back({static_cast<int>(f.level), f.about, f.text, f.advice});
  return dump(json);
}

RankReport parse_report(const std::string& text) {
  const Json json = Json::parse(text);
  RankReport report{json.at("rank"),       json.at("host"), json.at("processors"), json.at("threads"), {},
                    json.at("common_simd")};
  for (const Json& f : json.at("findings"))
    report.findings.push_back({static_cast<Level>(f.at(0).get<int>()), f.at(1), f.at(2), f.at(3)});
  return report;
}

Level Diagnosis::worst() const {
  Level worst = Level::kOk;
  for (const Line& line : lines) worst = std::max(worst, line.finding.level);
  return worst;
}

std::string Diagnosis::text() const {
  std::string text;
  int warnings = 0, failures = 0;
  for (const auto& [finding, found_by] : lines) {
    const bool all = static_cast<int>(found_by.size()) == ranks;
    text += fmt::format("{:<5} {:<14} {}{}\n", name_of(finding.level), finding.about,
                        all ? "" : name_numbers("rank", found_by) + ": ", finding.text);
    if (!finding.advice.empty()) text += fmt::format("{:20}-> {}\n", "", finding.advice);
    warnings += finding.level == Level::kWarn ? 1 : 0;
    failures += finding.level == Level::kFail ? 1 : 0;
  }
  return printable(text + fmt::format("failures: {}, warnings: {}\n", failures, warnings), true);
}

std::string Diagnosis::json() const {
  Json json{{"status", name_of(worst())}, {"ranks", ranks}, {"findings", Json::array()}};
  for (const auto& [finding, found_by] : lines)
    json["findings"].push_back({{"level", name_of(finding.level)},
                                {"about", finding.about},
                                {"text", finding.text},
                                {"advice", finding.advice},
                                {"ranks", found_by}});
  return dump(json) + '\n';
}

Diagnosis diagnose(std::span<const RankReport> reports) {
  Diagnosis diagnosis;
  diagnosis.ranks = static_cast<int>(reports.size());
  for (const RankReport& report : reports)
    for (const Finding& finding : report.findings) add(diagnosis.lines, finding, report.rank);
  compare_versions(diagnosis.lines, reports);
  compare_processors(diagnosis.lines, reports);
  return diagnosis;
}

}  // namespace syncline::tools
