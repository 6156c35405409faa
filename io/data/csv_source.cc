// CSV source: csv_index.h finds the records, libcsv splits them into fields, and this file parses the numbers.
#include <csv.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "io/data/csv_index.h"
#include "io/files/refuse.h"
#include "syncline/data/open_source.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

class RecordParser {
 public:
  explicit RecordParser(char delimiter) : delimiter_(delimiter) { start(); }
  ~RecordParser() { csv_free(&parser_); }
  RecordParser(const RecordParser&) = delete;
  RecordParser& operator=(const RecordParser&) = delete;

  // Returns an error text; empty on success.
  std::string parse(std::string_view record) {
    text_.clear();
    ends_.clear();
    rows_ = 0;
    const std::size_t read = csv_parse(&parser_, record.data(), record.size(), add_field, end_row, this);
    if (read != record.size() || csv_fini(&parser_, add_field, end_row, this) != 0) {
      std::string problem = join_text("byte ", read + 1, " of the record: ", csv_strerror(csv_error(&parser_)));
      csv_free(&parser_);
      start();
      return problem;
    }
    return rows_ > 1 ? "a carriage return without a line feed" : "";
  }

  std::size_t fields() const { return ends_.size(); }
  std::string_view field(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  void start() {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) != 0) fail<IoError>("cannot initialize libcsv");
    csv_set_delim(&parser_, static_cast<unsigned char>(delimiter_));
  }
  // Exceptions must not pass through libcsv.
  static void add_field(void* text, std::size_t size, void* self) noexcept {
    auto* parser = static_cast<RecordParser*>(self);
    parser->text_.append(static_cast<const char*>(text), size);
    parser->ends_.push_back(parser->text_.size());
  }
  static void end_row(int, void* self) noexcept { ++static_cast<RecordParser*>(self)->rows_; }

  char delimiter_;
  csv_parser parser_;
  std::string text_;  // of all fields
  std::vector<std::size_t> ends_;
  int rows_ = 0;
};

std::string_view trimmed(std::string_view record) {
  while (record.ends_with('\r')) record.remove_suffix(1);
  return record;
}

// Empty if `text` is not a finite number of type T.
template <class T>
std::optional<T> number_of(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  // Rounds a float from a double, as NumPy does.
  std::conditional_t<std::is_floating_point_v<T>, double, T> value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const auto number = static_cast<T>(value);
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(number)) return std::nullopt;
  return number;
}

struct FieldRange {
  std::size_t first = 0, count = 1;
};

class CsvSource : public Source {
 public:
  CsvSource(std::vector<Column> columns, std::unique_ptr<RandomAccessFile> file, CsvIndex index, char delimiter,
            std::vector<std::string> fields, std::vector<FieldRange> ranges)
      : Source(std::move(columns), index.rows()),
        file_(std::move(file)),
        index_(std::move(index)),
        parser_(delimiter),
        fields_(std::move(fields)),
        ranges_(std::move(ranges)) {}

  void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) override {
    for (std::int64_t i = 0; i < count; ++i) {
      parse_row(begin + i);
      for (std::size_t c = 0; c < ranges_.size(); ++c)
        with_number(columns()[c].dtype, [&]<class T>(T) { convert<T>(ranges_[c], row_span(targets[c], at + i, 1)); });
    }
  }

 private:
  void parse_row(std::int64_t row) {
    const std::size_t group = index_.group_of(row);
    if (group != loaded_) load(group);
    const CsvRecord& record = records_[static_cast<std::size_t>(row - index_.group(group).first_row)];
    line_ = record.line;
    const std::string_view text =
        std::string_view(text_).substr(record.begin - index_.group(group).begin, record.end - record.begin);
    const std::string problem = parser_.parse(trimmed(text));
    if (!problem.empty()) fail_here(problem);
    if (parser_.fields() != fields_.size())
      fail_here("has ", parser_.fields(), " fields, but the file's first line has ", fields_.size());
  }

  void load(std::size_t group) {
    loaded_ = kNone;  // until loaded completely
    const CsvIndex::Group& place = index_.group(group);
    text_.resize(index_.end_of(group) - place.begin);
    file_->read(place.begin, std::as_writable_bytes(std::span(text_)));
    records_.clear();
    CsvScanner scanner(file_->path(), place.begin, place.line);
    scanner.scan(text_, records_);
    scanner.finish(records_);
    const std::int64_t end = group + 1 < index_.groups() ? index_.group(group + 1).first_row : rows();
    if (records_.size() != static_cast<std::size_t>(end - place.first_row))
      fail<IoError>("data file '", file_->path(), "', line ", place.line, ": the file has changed since it was opened");
    loaded_ = group;
  }

  template <class T>
  void convert(const FieldRange& range, std::span<std::byte> target) {
    auto* values = reinterpret_cast<T*>(target.data());
    for (std::size_t i = 0; i < range.count; ++i) {
      const std::string_view text = parser_.field(range.first + i);
      const std::optional<T> value = number_of<T>(text);
      if (!value)
        fail_here("field ", range.first + i + 1, " ('", shortened(fields_[range.first + i]), "') is '", shortened(text),
                  "', not a finite ", dtype_of<T>());
      values[i] = *value;
    }
  }

  static std::string shortened(std::string_view text) {
    constexpr std::size_t kShown = 40;
    return text.size() > kShown ? std::string(text.substr(0, kShown)) + "..." : std::string(text);
  }

  template <class... Parts>
  [[noreturn]] void fail_here(const Parts&... parts) const {
    refuse("data file '", file_->path(), "', line ", line_, ": ", parts...);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::unique_ptr<RandomAccessFile> file_;
  CsvIndex index_;
  RecordParser parser_;
  std::vector<std::string> fields_;
  std::vector<FieldRange> ranges_;  // per column
  std::size_t loaded_ = kNone;      // the group of text_ and records_
  std::string text_;
  std::vector<CsvRecord> records_;
  std::int64_t line_ = 0;  // of the current record
};

// The names of the fields; also checks that the file is text.
std::vector<std::string> field_names(RandomAccessFile& file, const CsvIndex& index, const CsvFormat& format) {
  const CsvRecord& first = index.first();
  std::string text(first.end - first.begin, '\0');
  file.read(first.begin, std::as_writable_bytes(std::span(text)));
  RecordParser parser(format.delimiter);
  const std::string problem = parser.parse(trimmed(text));
  if (!problem.empty()) fail<IoError>("data file '", file.path(), "', line ", first.line, ": ", problem);
  const auto is_no_text = [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) && !std::isspace(c); };
  if (std::any_of(text.begin(), text.end(), is_no_text))
    fail<IoError>("data file '", file.path(), "': is neither text nor an IDX, npy, npz or HDF5 file");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parser.fields(); ++i)
    names.push_back(format.header ? std::string(parser.field(i)) : std::to_string(i));
  return names;
}

std::vector<CsvColumn> wanted_columns(const std::string& path, const SourceOptions& options,
                                      std::span<const std::string> fields) {
  std::vector<CsvColumn> columns;
  if (!options.csv.columns.empty()) {
    if (options.columns.empty()) return options.csv.columns;
    for (const std::string& name : options.columns) {
      const auto column = std::ranges::find(options.csv.columns, name, &CsvColumn::name);
      if (column == options.csv.columns.end())
        fail<ValueError>("data file '", path, "': csv.columns has no column '", name, "'");
      columns.push_back(*column);
    }
    return columns;
  }
  std::set<std::string_view> seen;
  for (const std::string& name : options.columns.empty() ? fields : std::span(options.columns)) {
    if (options.columns.empty() && !seen.insert(name).second)
      refuse("data file '", path, "': two fields have the name '", name, "'; give the columns to read");
    columns.push_back({name, name, {}});
  }
  return columns;
}

FieldRange range_of(const std::string& path, const CsvColumn& column, std::span<const std::string> fields) {
  const auto find = [&](const std::string& name) {
    const auto found = std::find(fields.begin(), fields.end(), name);
    if (found == fields.end()) refuse("data file '", path, "': has no field '", name, "'");
    return static_cast<std::size_t>(found - fields.begin());
  };
  const std::size_t first = find(column.first), last = column.last.empty() ? first : find(column.last);
  if (last < first)
    fail<ValueError>("data file '", path, "': column '", column.name, "': field '", column.first, "' comes after '",
                     column.last, "'");
  return {first, last - first + 1};
}

}  // namespace

std::unique_ptr<Source> open_csv_source(const std::string& path, const SourceOptions& options) {
  std::unique_ptr<RandomAccessFile> file = open_random_access_file(path);
  CsvIndex index(*file, options.csv.header);
  if (index.first().end == index.first().begin) fail<IoError>("data file '", path, "': is empty");
  std::vector<std::string> fields = field_names(*file, index, options.csv);
  std::vector<Column> columns;
  std::vector<FieldRange> ranges;
  for (const CsvColumn& column : wanted_columns(path, options, fields)) {
    if (column.dtype == DType::kBool || column.dtype == DType::kFloat16)
      fail<ValueError>("data file '", path, "': column '", column.name, "': ", column.dtype,
                       " is not read from text; use uint8 or float32");
    const FieldRange range = ranges.emplace_back(range_of(path, column, fields));
    const Shape row = column.last.empty() ? Shape{} : Shape{static_cast<std::int64_t>(range.count)};
    columns.push_back({column.name, column.dtype, row});
  }
  return std::make_unique<CsvSource>(std::move(columns), std::move(file), std::move(index), options.csv.delimiter,
                                     std::move(fields), std::move(ranges));
}

}  // namespace syncline::io
