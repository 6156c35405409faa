#include "io/data/row_order.h"

#include <algorithm>
#include <numeric>

#include "io/data/data_order.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::int64_t kUnshuffledWindow = 1 << 16;  // bounds the memory of unshuffled row lists

}  // namespace

RowOrder::RowOrder(std::int64_t rows, Shuffle shuffle, std::uint64_t seed, BlockShuffle blocks)
    : rows_(rows), shuffle_(shuffle), seed_(seed), blocks_(blocks) {
  if (rows < 0 || blocks.block < 1 || blocks.window < 1)
    fail<ValueError>("row order: ", rows, " rows in blocks of ", blocks.block, ", ", blocks.window,
                     " of them in a window; these numbers must be positive");
}

std::int64_t RowOrder::rows_of_block(std::int64_t block) const {
  return std::min(blocks_.block, rows_ - block * blocks_.block);
}

void RowOrder::begin_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return;
  block_order_ = epoch_order(seed_, epoch, (rows_ + blocks_.block - 1) / blocks_.block);
  window_begins_ = {0};
  std::int64_t position = 0;
  for (std::size_t i = 0; i < block_order_.size(); ++i) {
    position += rows_of_block(block_order_[i]);
    const bool last = i + 1 == block_order_.size();
    if (last || (i + 1) % static_cast<std::size_t>(blocks_.window) == 0) window_begins_.push_back(position);
  }
  epoch_ = epoch;
}

RowOrder::Window RowOrder::window_of(std::int64_t epoch, std::int64_t position) {
  if (epoch < 0) fail<ValueError>("row order: epoch ", epoch, " must not be negative");
  if (shuffle_ == Shuffle::kRows) return {epoch, 0, rows_};
  if (shuffle_ == Shuffle::kNone) {
    const std::int64_t begin = position / kUnshuffledWindow * kUnshuffledWindow;
    return {epoch, begin, std::min(begin + kUnshuffledWindow, rows_)};
  }
  begin_epoch(epoch);
  const auto end = std::upper_bound(window_begins_.begin(), window_begins_.end(), position);
  return {epoch, *(end - 1), *end};
}

std::vector<std::int64_t> RowOrder::rows_of(const Window& window) {
  if (shuffle_ == Shuffle::kRows) return epoch_order(seed_, window.epoch, rows_);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(window.end - window.begin));
  if (shuffle_ == Shuffle::kNone) {
    std::iota(rows.begin(), rows.end(), window.begin);
    return rows;
  }
  begin_epoch(window.epoch);
  const auto number =
      std::lower_bound(window_begins_.begin(), window_begins_.end(), window.begin) - window_begins_.begin();
  auto to = rows.begin();
  for (auto block = block_order_.begin() + number * blocks_.window; to != rows.end(); ++block) {
    const auto end = to + rows_of_block(*block);
    std::iota(to, end, *block * blocks_.block);
    to = end;
  }
  std::vector<std::int64_t> shuffled(rows.size());
  const std::vector<std::int64_t> order = part_order(seed_, window.epoch, number, window.end - window.begin);
  for (std::size_t i = 0; i < rows.size(); ++i) shuffled[i] = rows[static_cast<std::size_t>(order[i])];
  return shuffled;
}

std::int64_t RowOrder::largest_window() const {
  if (shuffle_ != Shuffle::kBlocks) return rows_;
  std::int64_t rows = 0;
  return __builtin_mul_overflow(blocks_.block, blocks_.window, &rows) ? rows_ : std::min(rows, rows_);
}

}  // namespace syncline::io
