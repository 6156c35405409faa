#include "io/data/batch_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "syncline/error.h"

namespace syncline::io {
namespace {

BatchSplit split_of(const Source& source, const LoaderOptions& options) {
  if (options.rows < 0 || options.rows > source.rows())
    fail<ValueError>("loader: the first ", options.rows, " rows are requested, but the data set has ", source.rows());
  if (source.rows() == 0) fail<ValueError>("loader: the data set has no rows");
  if (options.batch < 1 || options.ranks < 1 || options.rank < 0 || options.shares < 1 ||
      options.rank > options.ranks - options.shares)
    fail<ValueError>("loader: batch ", options.batch, ", rank ", options.rank, " of ", options.ranks, " with ",
                     options.shares,
                     " shares; give a positive batch, and a rank and shares whose sum is at most the number of ranks");
  if (options.prefetch < 0) fail<ValueError>("loader: prefetch ", options.prefetch, " must not be negative");
  return {options.rows > 0 ? options.rows : source.rows(), options.batch, options.rank, options.ranks, options.shares};
}

}  // namespace

BatchReader::BatchReader(std::unique_ptr<Source> source, const LoaderOptions& options)
    : source_(std::move(source)),
      split_(split_of(*source_, options)),
      order_(split_.rows, options.shuffle, options.seed, options.blocks) {
  // The prefetched batches, the one being read and the one in use.
  const std::size_t row = source_->row_bytes(),
                    batches = static_cast<std::size_t>((options.prefetch + 2) * split_.largest_own()) * row;
  if (static_cast<std::size_t>(split_.rows) * row + batches <= options.memory) {
    all_ = source_->read_range(0, split_.rows);
    return;
  }
  if (options.shuffle == Shuffle::kBlocks) shuffled_.emplace(*source_, order_, split_);
  const std::size_t needed = batches + (shuffled_ ? shuffled_->memory() : 0);
  if (needed > options.memory)
    fail<ValueError>("loader: ", options.prefetch, " prefetched batches of ", split_.largest_own(), " rows of ", row,
                     " bytes", shuffled_ ? " and the shuffled windows" : "", " need ", needed, " bytes, but ",
                     options.memory, " are allowed; use ", shuffled_ ? "a smaller window" : "smaller batches",
                     " or more memory");
}

std::vector<std::int64_t> BatchReader::rows_at(std::int64_t epoch, Positions positions) {
  std::vector<std::int64_t> rows;
  while (positions.begin < positions.end) {
    const RowOrder::Window window = order_.window_of(epoch, positions.begin);
    if (window != window_) {
      window_rows_ = order_.rows_of(window);
      window_ = window;
    }
    const std::int64_t end = std::min(positions.end, window.end);
    rows.insert(rows.end(), window_rows_.begin() + (positions.begin - window.begin),
                window_rows_.begin() + (end - window.begin));
    positions.begin = end;
  }
  return rows;
}

void BatchReader::gather(std::span<const std::int64_t> rows, Batch& batch) {
  for (std::size_t c = 0; c < batch.size(); ++c) {
    const std::size_t width = columns()[c].row_bytes();
    std::byte* to = batch[c].raw();
    for (const std::int64_t row : rows) {
      if (width > 0) std::memcpy(to, all_[c].raw() + static_cast<std::size_t>(row) * width, width);
      to += width;
    }
  }
}

Batch BatchReader::read(std::int64_t epoch, std::int64_t step) {
  if (epoch < 0 || step < 0 || step >= steps())
    fail<ValueError>("loader: step ", step, " of epoch ", epoch, "; an epoch has ", steps(), " steps");
  const Positions positions = split_.own(step);
  Batch batch = source_->make_room(positions.size());
  if (shuffled_) shuffled_->read(epoch, positions, batch);
  else if (all_.empty()) source_->read(rows_at(epoch, positions), batch);
  else gather(rows_at(epoch, positions), batch);
  return batch;
}

}  // namespace syncline::io
