#include "io/data/shuffle_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace syncline::io {
namespace {

// Index bytes per row of a window: `rows` and `place`; while begin() runs, also the window's order and a pair to sort.
constexpr std::size_t kIndexBytes = 5 * sizeof(std::int64_t);

}  // namespace

ShuffleWindow::ShuffleWindow(Source& source, RowOrder& order, const BatchSplit& split)
    : source_(source), order_(order), split_(split) {}

std::int64_t ShuffleWindow::largest_own() const {
  const std::int64_t window = order_.largest_window();
  return std::min(window, (window / split_.batch + 2) * split_.largest_own());
}

std::size_t ShuffleWindow::memory() const {
  return 2 * (static_cast<std::size_t>(largest_own()) * source_.row_bytes() +
              static_cast<std::size_t>(order_.largest_window()) * kIndexBytes);
}

void ShuffleWindow::begin(Loaded& loaded, const RowOrder::Window& window) {
  loaded.window = {};  // until set up completely
  loaded.filled = 0;
  const std::vector<std::int64_t> rows = order_.rows_of(window);
  std::vector<std::pair<std::int64_t, std::int64_t>> own;  // row, position in the window
  for (std::int64_t step = window.begin / split_.batch; step * split_.batch < window.end; ++step) {
    const auto [first, last] = split_.own(step);
    for (std::int64_t p = std::max(first, window.begin); p < std::min(last, window.end); ++p)
      own.emplace_back(rows[static_cast<std::size_t>(p - window.begin)], p - window.begin);
  }
  std::sort(own.begin(), own.end());
  loaded.rows.resize(own.size());
  loaded.place.resize(rows.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    loaded.rows[i] = own[i].first;
    loaded.place[static_cast<std::size_t>(own[i].second)] = static_cast<std::int64_t>(i);
  }
  // Reuse the memory of earlier windows: the kernel takes longer to provide memory than the copy of the rows takes.
  const auto needed = static_cast<std::int64_t>(own.size());
  if (loaded.values.empty() || loaded.values[0].shape()[0] < needed)
    loaded.values = source_.make_room(std::max(needed, largest_own()));
  loaded.window = window;
}

void ShuffleWindow::fill(Loaded& loaded, std::int64_t rows) {
  if (rows <= loaded.filled) return;
  const auto wanted =
      std::span<const std::int64_t>(loaded.rows)
          .subspan(static_cast<std::size_t>(loaded.filled), static_cast<std::size_t>(rows - loaded.filled));
  source_.read(wanted, loaded.values, loaded.filled);
  loaded.filled = rows;
}

void ShuffleWindow::enter(const RowOrder::Window& window) {
  if (current_.window != window) {
    std::swap(current_, next_);
    if (current_.window != window) begin(current_, window);
  }
  fill(current_, static_cast<std::int64_t>(current_.rows.size()));
}

void ShuffleWindow::read_ahead(std::int64_t position) {
  const auto& [epoch, begin_of_window, end] = current_.window;
  const bool ends = end == split_.rows;
  const RowOrder::Window following = order_.window_of(epoch + ends, ends ? 0 : end);
  if (next_.window != following) begin(next_, following);
  const auto share = static_cast<double>(position - begin_of_window) / static_cast<double>(end - begin_of_window);
  fill(next_, static_cast<std::int64_t>(share * static_cast<double>(next_.rows.size())));
}

void ShuffleWindow::read(std::int64_t epoch, Positions positions, std::span<Array> targets) {
  for (std::int64_t position = positions.begin; position < positions.end;) {
    enter(order_.window_of(epoch, position));
    const std::int64_t end = std::min(positions.end, current_.window.end);
    for (std::size_t c = 0; c < targets.size(); ++c) {
      const std::size_t width = source_.columns()[c].row_bytes();
      std::byte* to = row_span(targets[c], position - positions.begin, end - position).data();
      for (std::int64_t p = position; p < end && width > 0; ++p, to += width) {
        const std::int64_t place = current_.place[static_cast<std::size_t>(p - current_.window.begin)];
        std::memcpy(to, row_span(current_.values[c], place, 1).data(), width);
      }
    }
    position = end;
  }
  if (positions.size() > 0) read_ahead(positions.end);
}

}  // namespace syncline::io
