// CsvScanner, CsvIndex: find the records of a CSV file by RFC 4180. A line feed within quotes does not end a record;
// blank lines are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/random_access_file.h"

namespace syncline::io {

struct CsvRecord {
  std::uint64_t begin = 0, end = 0;  // byte offsets, without the line feed
  std::int64_t line = 1;             // the first line, counted from 1
};

// Splits text, given in pieces of any size, into records. Throws IoError if a record exceeds 64 MiB.
class CsvScanner {
 public:
  // The text begins at byte `offset` of the file, on line `line`. `path` is for messages and must outlive the scanner.
  CsvScanner(const std::string& path, std::uint64_t offset, std::int64_t line);

  // Appends the records that end in `text`.
  void scan(std::string_view text, std::vector<CsvRecord>& records);
  // Appends the record that ends with the file. Throws IoError if the file ends within quotes.
  void finish(std::vector<CsvRecord>& records);

 private:
  const std::string& path_;
  std::uint64_t offset_;
  CsvRecord record_;  // the unfinished record
  std::int64_t line_;
  bool quoted_ = false, blank_ = true;
};

// Indexes rows in groups of some KiB of text: the index stays small, and finding a row reads one group.
class CsvIndex {
 public:
  // Reads the file once. `skip_first`: the first record is a header, not a row. Throws IoError.
  CsvIndex(RandomAccessFile& file, bool skip_first);

  // The first record of the file. Empty (end == begin) if there is none.
  const CsvRecord& first() const { return first_; }
  std::int64_t rows() const { return rows_; }

  struct Group {
    std::uint64_t begin;  // byte offset
    std::int64_t line, first_row;
  };
  std::size_t groups() const { return groups_.size(); }
  std::size_t group_of(std::int64_t row) const;
  const Group& group(std::size_t number) const { return groups_[number]; }
  std::uint64_t end_of(std::size_t number) const;

 private:
  CsvRecord first_;
  std::int64_t rows_ = 0;
  std::uint64_t size_;
  std::vector<Group> groups_;
};

}  // namespace syncline::io
