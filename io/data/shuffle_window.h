// ShuffleWindow: the rows of the window that batches are drawn from, and the beginning of the next one, which is read
// bit by bit while this one is used, so that reading is spread evenly over the steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/data/batch_split.h"
#include "io/data/row_order.h"
#include "syncline/data/source.h"

namespace syncline::io {

class ShuffleWindow {
 public:
  // Both must outlive it. It reads a rank's own rows only. For one thread.
  ShuffleWindow(Source& source, RowOrder& order, const BatchSplit& split);

  // The rows at `positions`, all this rank's own, into `targets` from the beginning on. Throws what the source throws;
  // then it can be asked again.
  void read(std::int64_t epoch, Positions positions, std::span<Array> targets);

  // The most memory it takes, in bytes.
  std::size_t memory() const;

 private:
  struct Loaded {
    RowOrder::Window window;
    std::vector<std::int64_t> rows;   // own ones, ascending: how they lie in `values`
    std::vector<std::int64_t> place;  // of each position of the window in `values`, if it is an own one
    std::vector<Array> values;
    std::int64_t filled = 0;  // rows that have been read
  };
  std::int64_t largest_own() const;
  void begin(Loaded& loaded, const RowOrder::Window& window);
  void fill(Loaded& loaded, std::int64_t rows);
  void enter(const RowOrder::Window& window);
  void read_ahead(std::int64_t position);

  Source& source_;
  RowOrder& order_;
  BatchSplit split_;
  Loaded current_, next_;
};

}  // namespace syncline::io
