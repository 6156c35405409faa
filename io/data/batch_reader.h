// BatchReader: the batches of a data set. Which rows are in a batch, and in which order, depends on (seed, epoch, step)
// and the options alone: a resumed run meets the rows that the unbroken one would have met, and the ranks of a job meet
// together those of one process.
//
// A data set that fits into `memory` is read once, when the reader is made. One that does not is read from its files,
// a row at a time (Shuffle::kRows), in stretches (kNone), or a window at a time (kBlocks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "io/data/batch_split.h"
#include "io/data/row_order.h"
#include "io/data/shuffle_window.h"
#include "syncline/data/options.h"
#include "syncline/data/source.h"

namespace syncline::io {

class BatchReader {
 public:
  // Throws ValueError for options that make no sense, and if they need more than `memory`; IoError from reading.
  BatchReader(std::unique_ptr<Source> source, const LoaderOptions& options);

  const std::vector<Column>& columns() const { return source_->columns(); }
  std::int64_t rows() const { return split_.rows; }
  // Of an epoch.
  std::int64_t steps() const { return split_.steps(); }

  // Step 0 .. steps()-1 of an epoch from 0. Quick if steps are asked for in order. The batch is the caller's. Throws
  // ValueError for a step there is not, IoError from reading. For one thread at a time.
  Batch read(std::int64_t epoch, std::int64_t step);

 private:
  std::vector<std::int64_t> rows_at(std::int64_t epoch, Positions positions);
  void gather(std::span<const std::int64_t> rows, Batch& batch);

  std::unique_ptr<Source> source_;
  BatchSplit split_;
  RowOrder order_;
  std::optional<ShuffleWindow> shuffled_;  // for kBlocks and what does not fit
  std::vector<Array> all_;                 // the data set, if it fits
  RowOrder::Window window_;                // whose order window_rows_ is
  std::vector<std::int64_t> window_rows_;
};

}  // namespace syncline::io
