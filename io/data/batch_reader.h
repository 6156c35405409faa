// BatchReader: the batches of a data set. The rows of a batch and their order depend only on (seed, epoch, step) and
// the options. So a resumed run reads the rows of the uninterrupted run, and the ranks of a job together read the rows
// of one process.
//
// If the data set and the prefetched batches fit into `memory`, the constructor reads the whole data set. Otherwise
// rows are read from the files one at a time (Shuffle::kRows), in runs (kNone), or a window at a time (kBlocks).
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
  // Throws ValueError for invalid options, or if they need more than `memory`; IoError from reading.
  BatchReader(std::unique_ptr<Source> source, const LoaderOptions& options);

  const std::vector<Column>& columns() const { return source_->columns(); }
  std::int64_t rows() const { return split_.rows; }
  // Steps per epoch.
  std::int64_t steps() const { return split_.steps(); }

  // This rank's rows of step 0 .. steps()-1 of epoch 0 or later. Fast if steps are read in order. The caller owns the
  // batch. Throws ValueError for a step out of range, IoError from reading. For one thread at a time.
  Batch read(std::int64_t epoch, std::int64_t step);

 private:
  std::vector<std::int64_t> rows_at(std::int64_t epoch, Positions positions);
  void gather(std::span<const std::int64_t> rows, Batch& batch);

  std::unique_ptr<Source> source_;
  BatchSplit split_;
  RowOrder order_;
  std::optional<ShuffleWindow> shuffled_;  // for kBlocks if the data set does not fit
  std::vector<Array> all_;                 // the data set, if it fits
  RowOrder::Window window_;                // the window of window_rows_
  std::vector<std::int64_t> window_rows_;
};

}  // namespace syncline::io
