// The histogram pictures of a build without gd.
#include "syncline/error.h"
#include "tools/histogram_picture.h"

namespace syncline::tools {

std::vector<std::byte> draw_histograms(std::span<const HistogramPanel>) {
  fail("--png: this build of the command cannot draw, because gd (libgd) was missing; --histogram prints text");
}

}  // namespace syncline::tools
