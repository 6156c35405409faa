// ShuffleWindow: holds the rows of the current shuffle window. It reads the next window in small parts while the
// current one is used, which spreads the reads evenly over the steps.
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
  // Source and order must outlive the object. It reads only the rank's own rows. For one thread.
  ShuffleWindow(Source& source, RowOrder& order, const BatchSplit& split);

  // Copies the rows at `positions`, all owned by this rank, to the beginning of `targets`. Throws what the source
  // throws; the caller may then retry.
  void read(std::int64_t epoch, Positions positions, std::span<Array> targets);

  // The largest memory use in bytes.
  std::size_t memory() const;

 private:
  struct Loaded {
    RowOrder::Window window;
    std::vector<std::int64_t> rows;   // own rows, ascending: the order in `values`
    std::vector<std::int64_t> place;  // index in `values` of each own position of the window
    std::vector<Array> values;
    std::int64_t filled = 0;  // number of rows read
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
