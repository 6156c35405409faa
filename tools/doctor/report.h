// What the ranks of a job report about themselves, and what follows from all of it together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"

namespace syncline::tools {

struct RankReport {
  int rank = 0;
  std::string host;
  std::vector<int> processors;  // that it may use, ascending
  int threads = 1;
  Findings findings;
};

// As text for the wire, and back. parse_report throws what nlohmann_json throws.
std::string to_text(const RankReport& report);
RankReport parse_report(const std::string& text);

struct Diagnosis {
  struct Line {
    Finding finding;
    std::vector<int> ranks;  // that found it
  };
  int ranks = 1;
  std::vector<Line> lines;

  Level worst() const;
  std::string text() const;  // for people: a line a finding, with the ranks unless it is all of them
  std::string json() const;
};

// What several ranks found alike is one line. Versions that differ are an error, and ranks of a host must not have more
// threads than processors. The reports are those of all ranks, in order.
Diagnosis diagnose(std::span<const RankReport> reports);

}  // namespace syncline::tools
