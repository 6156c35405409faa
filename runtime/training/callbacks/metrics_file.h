// Metrics files: numbers for monitoring systems, as OpenMetrics 1.0 text. Of its kinds of metric only the gauge, which
// is written alike in Prometheus's older format, so that the node exporter's textfile collector reads the file too.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace syncline::io {

struct Gauge {
  struct Sample {
    std::vector<std::pair<std::string, std::string>> labels;  // by name; values are any UTF-8
    double value = 0;
  };

  std::string name;  // ends in "_" and the unit, if it has one
  std::string help;
  std::vector<Sample> samples;
  std::string unit{};
};

std::string open_metrics_text(const std::vector<Gauge>& gauges);

// Replaces the file in one rename: readers find the old text or the new one. Throws IoError.
void write_metrics_file(const std::string& path, const std::vector<Gauge>& gauges);

}  // namespace syncline::io
