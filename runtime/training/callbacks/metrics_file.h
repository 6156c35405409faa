// Metrics files: numbers for monitoring systems, as OpenMetrics 1.0 text. All metrics are gauges. Prometheus's older
// format writes gauges alike, so the node exporter's textfile collector reads the file too.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace syncline::io {

struct Gauge {
  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;  // (name, value); values are any UTF-8
    double value = 0;
  };

  std::string name;  // ends in "_" + unit if there is a unit
  std::string help;
  std::vector<Sample> samples;
  std::string unit{};
};

std::string open_metrics_text(const std::vector<Gauge>& gauges);

// Replaces the file by a rename: readers see the old text or the new text. Throws IoError.
void write_metrics_file(const std::string& path, const std::vector<Gauge>& gauges);

}  // namespace syncline::io
