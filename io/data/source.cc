#include "syncline/data/source.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "syncline/error.h"

namespace syncline::io {
namespace {

class ArraySource : public Source {
 public:
  ArraySource(std::vector<Column> columns, std::vector<NamedRows> values, std::int64_t rows)
      : Source(std::move(columns), rows), values_(std::move(values)) {}

  std::vector<Array> read_range(std::int64_t begin, std::int64_t end) override {
    check_range(begin, end);
    std::vector<Array> rows;
    for (const NamedRows& column : values_) rows.push_back(column.values.rows(begin, end));
    return rows;
  }

  void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) override {
    for (std::size_t c = 0; c < values_.size(); ++c) {
      const std::span<std::byte> target = row_span(targets[c], at, count);
      const std::span<std::byte> from = row_span(values_[c].values, begin, count);
      if (!target.empty()) std::memcpy(target.data(), from.data(), target.size());
    }
  }

 private:
  std::vector<NamedRows> values_;
};

class JoinedSource : public Source {
 public:
  JoinedSource(std::vector<Column> columns, std::vector<std::unique_ptr<Source>> sources, std::int64_t rows)
      : Source(std::move(columns), rows), sources_(std::move(sources)) {}

  std::vector<Array> read_range(std::int64_t begin, std::int64_t end) override {
    std::vector<Array> rows;
    for (const std::unique_ptr<Source>& source : sources_)
      for (Array& column : source->read_range(begin, end)) rows.push_back(std::move(column));
    return rows;
  }

  void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) override {
    for (const std::unique_ptr<Source>& source : sources_) {
      const std::size_t columns = source->columns().size();
      source->read_run(begin, count, targets.first(columns), at);
      targets = targets.subspan(columns);
    }
  }

 private:
  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace

bool is_possible(DType dtype, const Shape& shape) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  return syncline::is_possible(shape) && std::all_of(shape.begin(), shape.end(), [&](std::int64_t dim) {
           return dim >= 0 && !__builtin_mul_overflow(bytes, dim, &bytes);
         });
}

Shape Column::shape_of(std::int64_t rows) const {
  Shape shape = row;
  shape.insert(0, rows);
  return shape;
}

Source::Source(std::vector<Column> columns, std::int64_t rows) : columns_(std::move(columns)), rows_(rows) {
  if (columns_.empty()) fail<ValueError>("data source: there are no columns; give at least one");
  std::set<std::string_view> seen;
  for (const Column& column : columns_) {
    if (!seen.insert(column.name).second)
      fail<ValueError>("data source: two columns have the name '", column.name, "'");
    // A file without rows can claim any row shape.
    if (!is_possible(column.dtype, column.row))
      fail<ValueError>("data source: column '", column.name, "' has rows of the impossible shape ", column.row);
  }
}

std::size_t Source::row_bytes() const {
  std::size_t bytes = 0;
  for (const Column& column : columns_) bytes += column.row_bytes();
  return bytes;
}

std::vector<Array> Source::make_room(std::int64_t rows) const {
  std::vector<Array> room;
  for (const Column& column : columns_) room.push_back(Array::uninitialized(column.dtype, column.shape_of(rows)));
  return room;
}

void Source::check_range(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > rows_)
    fail<ValueError>("data source: rows ", begin, " to ", end, " are requested, but there are ", rows_);
}

void Source::read(std::span<const std::int64_t> rows, std::span<Array> targets, std::int64_t at) {
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    check_range(rows[i], rows[end - 1] + 1);
    read_run(rows[i], static_cast<std::int64_t>(end - i), targets, at + static_cast<std::int64_t>(i));
    i = end;
  }
}

std::vector<Array> Source::read_range(std::int64_t begin, std::int64_t end) {
  check_range(begin, end);
  std::vector<Array> rows = make_room(end - begin);
  if (begin < end) read_run(begin, end - begin, rows, 0);
  return rows;
}

std::span<std::byte> row_span(Array& array, std::int64_t at, std::int64_t count) {
  const auto width = static_cast<std::size_t>(array.shape().product(1, array.shape().ndim())) * size_of(array.dtype());
  return {array.raw() + static_cast<std::size_t>(at) * width, static_cast<std::size_t>(count) * width};
}

std::unique_ptr<Source> array_source(std::vector<NamedRows> values) {
  std::vector<Column> columns;
  for (const auto& [name, array] : values) {
    if (array.shape().ndim() == 0) fail<ValueError>("data source: column '", name, "' is a scalar and has no rows");
    if (array.shape()[0] != values[0].values.shape()[0])
      fail<ValueError>("data source: column '", name, "' has ", array.shape()[0], " rows, but '", values[0].name,
                       "' has ", values[0].values.shape()[0]);
    Shape row = array.shape();
    row.erase(0);
    columns.push_back({name, array.dtype(), std::move(row)});
  }
  const std::int64_t rows = values.empty() ? 0 : values[0].values.shape()[0];
  return std::make_unique<ArraySource>(std::move(columns), std::move(values), rows);
}

std::unique_ptr<Source> join_sources(std::vector<std::unique_ptr<Source>> sources) {
  std::vector<Column> columns;
  for (const std::unique_ptr<Source>& source : sources) {
    if (source->rows() != sources[0]->rows())
      fail<ValueError>("data source: column '", source->columns()[0].name, "' has ", source->rows(), " rows, but '",
                       sources[0]->columns()[0].name, "' has ", sources[0]->rows(),
                       "; they belong to different data sets");
    columns.insert(columns.end(), source->columns().begin(), source->columns().end());
  }
  const std::int64_t rows = sources.empty() ? 0 : sources[0]->rows();
  return std::make_unique<JoinedSource>(std::move(columns), std::move(sources), rows);
}

}  // namespace syncline::io
