#include "io/data/csv_index.h"

#include <algorithm>
#include <array>
#include <span>

#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::uint64_t kLongestRecord = std::uint64_t{64} << 20;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::uint64_t kGroup = std::uint64_t{16} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // written by spreadsheets before UTF-8 text

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::uint64_t begin_of_text(RandomAccessFile& file) {
  std::array<char, kByteOrderMark.size()> begin{};
  if (file.size() < begin.size()) return 0;
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return std::string_view(begin.data(), begin.size()) == kByteOrderMark ? begin.size() : 0;
}

}  // namespace

CsvScanner::CsvScanner(const std::string& path, std::uint64_t offset, std::int64_t line)
    : path_(path), offset_(offset), record_{offset, offset, line}, line_(line) {}

void CsvScanner::scan(std::string_view text, std::vector<CsvRecord>& records) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (std::count(line.begin(), line.end(), '"') % 2 == 1) quoted_ = !quoted_;
    blank_ = blank_ && std::all_of(line.begin(), line.end(), is_blank);
    record_.end = offset_ + line.size();
    if (record_.end - record_.begin > kLongestRecord)
      fail<IoError>("data file '", path_, "', line ", record_.line, ": a record has more than ", kLongestRecord,
                    " bytes; a quote is not closed, or this is not a CSV file");
    const bool whole = line.size() < text.size();
    text.remove_prefix(line.size() + whole);
    offset_ = record_.end + whole;
    if (!whole) return;
    ++line_;
    if (quoted_) continue;
    if (!blank_) records.push_back(record_);
    record_ = {offset_, offset_, line_};
    blank_ = true;
  }
}

void CsvScanner::finish(std::vector<CsvRecord>& records) {
  if (quoted_) fail<IoError>("data file '", path_, "', line ", record_.line, ": a quote is not closed");
  if (!blank_) records.push_back(record_);
}

CsvIndex::CsvIndex(RandomAccessFile& file, bool skip_first) : size_(file.size()) {
  const std::uint64_t begin = begin_of_text(file);
  CsvScanner scanner(file.path(), begin, 1);
  std::vector<CsvRecord> records;
  std::vector<char> piece(kPiece);
  const auto add_records = [&] {
    for (const CsvRecord& record : records) {
      const bool is_first = first_.end == first_.begin;
      if (is_first) first_ = record;
      if (is_first && skip_first) continue;
      if (groups_.empty() || record.begin - groups_.back().begin >= kGroup)
        groups_.push_back({record.begin, record.line, rows_});
      ++rows_;
    }
    records.clear();
  };
  for (std::uint64_t offset = begin; offset < size_; offset += piece.size()) {
    const std::span<char> part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), size_ - offset));
    file.read(offset, std::as_writable_bytes(part));
    scanner.scan({part.data(), part.size()}, records);
    add_records();
  }
  scanner.finish(records);
  add_records();
}

std::size_t CsvIndex::group_of(std::int64_t row) const {
  const auto after = std::upper_bound(groups_.begin(), groups_.end(), row,
                                      [](std::int64_t r, const Group& group) { return r < group.first_row; });
  return static_cast<std::size_t>(after - groups_.begin()) - 1;
}

std::uint64_t CsvIndex::end_of(std::size_t number) const {
  return number + 1 < groups_.size() ? groups_[number + 1].begin : size_;
}

}  // namespace syncline::io
