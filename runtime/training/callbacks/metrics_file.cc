#include "runtime/training/callbacks/metrics_file.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>

#include "io/files/atomic_file.h"

namespace syncline::io {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') result += "\\n";
    else if (c == '"' || c == '\\') (result += '\\') += c;
    else result += c;
  }
  return result;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string line(const std::string& name, const Gauge::Sample& sample) {
  std::string labels;
  for (const auto& [label, value] : sample.labels)
    labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", label, escaped(value));
  return fmt::format("{}{} {}\n", name, labels.empty() ? "" : "{" + labels + "}", number(sample.value));
}

}  // namespace

std::string open_metrics_text(const std::vector<Gauge>& gauges) {
  std::string text;
  for (const Gauge& gauge : gauges) {
    text += fmt::format("# TYPE {} gauge\n", gauge.name);
    if (!gauge.unit.empty()) text += fmt::format("# UNIT {} {}\n", gauge.name, gauge.unit);
    text += fmt::format("# HELP {} {}\n", gauge.name, escaped(gauge.help));
    for (const Gauge::Sample& sample : gauge.samples) text += line(gauge.name, sample);
  }
  return text + "# EOF\n";
}

void write_metrics_file(const std::string& path, const std::vector<Gauge>& gauges) {
  const std::string text = open_metrics_text(gauges);
  replace_file(path, std::as_bytes(std::span(text)));
}

}  // namespace syncline::io
