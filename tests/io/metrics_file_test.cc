#include "runtime/training/callbacks/metrics_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

TEST(MetricsFile, IsOpenMetricsText) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<Gauge> gauges{
      {"a_seconds", "how long\nit \\ took", {{{}, 0.25}}, "seconds"},
      {"b", "more", {{{{"name", "x\"\\\ny"}, {"rank", "1"}}, std::nan("")}, {{}, kInfinity}, {{}, -kInfinity}}}};
  EXPECT_EQ(
      open_metrics_text(gauges),
      "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds how long\\nit \\\\ took\na_seconds 0.25\n"
      "# TYPE b gauge\n# HELP b more\nb{name=\"x\\\"\\\\\\ny\",rank=\"1\"} NaN\nb +Inf\nb -Inf\n# EOF\n");
}

TEST(MetricsFile, ReplacesTheFile) {
  const Scratch scratch;
  const std::string path = scratch.path("a.prom");
  write_file(path, std::string(5000, 'x'));
  write_metrics_file(path, {});
  EXPECT_EQ(read_file(path), "# EOF\n");
  EXPECT_EQ(scratch.files(), (std::vector<std::string>{"a.prom"}));
}

}  // namespace
}  // namespace syncline::io
