// Draws histograms as a picture, for `syncline stat --png`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncline::tools {

struct HistogramPanel {
  std::string title{};                 // the name of an array; text that does not fit is cut off
  std::string note{};                  // below the title: dtype, shape, warnings
  bool warns = false;                  // the note is drawn in red
  std::string min{}, max{};            // below the ends of the axis
  std::vector<std::int64_t> counts{};  // of equal parts of [min, max]; empty: no bars
};

inline constexpr std::size_t kMostPanels = 200;

// Returns a PNG with one panel per histogram, three to a row. Each panel is scaled to its largest count, which is
// written in it. Throws ValueError for no panels or more than kMostPanels, and std::bad_alloc.
std::vector<std::byte> draw_histograms(std::span<const HistogramPanel> panels);

}  // namespace syncline::tools
