#include "io/data/row_file.h"

#include <algorithm>
#include <utility>

#include "io/arrays/npy.h"
#include "io/files/byte_order.h"
#include "io/files/refuse.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

class RowFileSource : public Source {
 public:
  RowFileSource(std::vector<Column> columns, std::vector<RowFile> files)
      : Source(std::move(columns), files[0].rows), files_(std::move(files)) {}

  void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) override {
    for (std::size_t c = 0; c < files_.size(); ++c) {
      const auto& [column, rows, file, offset, swapped] = files_[c];
      const std::span<std::byte> target = row_span(targets[c], at, count);
      file->read(offset + static_cast<std::uint64_t>(begin) * column.row_bytes(), target);
      if (swapped) swap_bytes(target, size_of(column.dtype));
      if (column.dtype == DType::kBool) check_bools(file->path(), column.name, targets[c].rows(at, at + count));
    }
  }

 private:
  std::vector<RowFile> files_;
};

}  // namespace

Shape row_shape(const std::string& path, DType dtype, const Shape& shape) {
  if (shape.ndim() == 0) fail<IoError>("data file '", path, "': holds a scalar, which has no rows");
  Shape row = shape;
  row.erase(0);
  // Check the row too: in a file without rows it may have any shape.
  if (!is_possible(dtype, row) || !is_possible(dtype, shape))
    fail<IoError>("data file '", path, "': its header claims the impossible shape ", shape);
  return row;
}

RowFile make_row_file(std::string name, DType dtype, const Shape& shape, std::unique_ptr<RandomAccessFile> file,
                      std::uint64_t begin, bool swapped) {
  Shape row = row_shape(file->path(), dtype, shape);
  const std::uint64_t bytes = static_cast<std::uint64_t>(shape.size()) * size_of(dtype);
  const std::uint64_t there = file->size() - std::min(begin, file->size());
  if (bytes != there)
    fail<IoError>("data file '", file->path(),
                  "': ", bytes < there ? "has more than" : "is truncated:", " its header claims shape ", shape, " of ",
                  dtype, "; ", there, " bytes follow it");
  return {{std::move(name), dtype, std::move(row)}, shape[0], std::move(file), begin, swapped};
}

std::unique_ptr<Source> row_file_source(const std::string& path, std::vector<RowFile> files) {
  if (files.empty()) fail<IoError>("data file '", path, "': holds no array");
  std::vector<Column> columns;
  for (const RowFile& file : files) {
    if (file.rows != files[0].rows)
      refuse("data file '", path, "': '", file.column.name, "' has ", file.rows, " rows, but '", files[0].column.name,
             "' has ", files[0].rows, "; give columns with equal numbers of rows");
    columns.push_back(file.column);
  }
  return std::make_unique<RowFileSource>(std::move(columns), std::move(files));
}

}  // namespace syncline::io
