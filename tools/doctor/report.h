// The reports of a job's ranks, and the diagnosis of all reports together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"

namespace syncline::tools {

struct RankReport {
  int rank = 0;
  std::string host;
  std::vector<int> processors;  // that the rank may use, ascending
  int threads = 1;
  Findings findings;
  bool common_simd = false;  // the rank asks for instruction sets that all ranks have
};

// Text for the wire. parse_report throws what nlohmann_json throws.
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
  std::string text() const;  // for people: a line per finding, with its ranks unless all found it
  std::string json() const;
};

// Merges equal findings of several ranks into one line. Versions that differ are an error, and instruction sets unless
// a rank asks for common ones; more threads than processors on a host are a warning. `reports` are those of all ranks,
// in order.
Diagnosis diagnose(std::span<const RankReport> reports);

}  // namespace syncline::tools
