// Histograms as a picture, for `syncline stat --png`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncline::tools {

struct HistogramPanel {
  std::string title{};                 // of one array; what does not fit is cut off
  std::string note{};                  // below it: dtype, shape, what is worth a warning
  bool warns = false;                  // the note is drawn in red
  std::string min{}, max{};            // below the ends of the axis
  std::vector<std::int64_t> counts{};  // of equal parts of [min, max]; empty: there is nothing to draw
};

inline constexpr std::size_t kMostPanels = 200;

// A PNG with a panel a histogram, three to a row, each scaled to its largest count, which is written beside it. Throws
// ValueError for no panels or more than kMostPanels, std::bad_alloc.
std::vector<std::byte> draw_histograms(std::span<const HistogramPanel> panels);

}  // namespace syncline::tools
