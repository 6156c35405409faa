// Where the records of a CSV file begin, by RFC 4180: a line feed within quotes does not end one, lines of blanks are
// none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/byte_file.h"

namespace syncline::io {

struct CsvRecord {
  std::uint64_t begin = 0, end = 0;  // bytes of the file, without the line feed
  std::int64_t line = 1;             // where it begins, counted from 1
};

// Cuts text, which comes in pieces of any size, into records. Throws IoError if one is longer than 64 MiB.
class CsvScanner {
 public:
  // From where in the file, and from which line, the text comes. `path` is for messages and must live as long.
  CsvScanner(const std::string& path, std::uint64_t offset, std::int64_t line);

  // Appends to `records` those that end in `text`.
  void scan(std::string_view text, std::vector<CsvRecord>& records);
  // The same for one that ends with the file. Throws IoError if that is within quotes.
  void finish(std::vector<CsvRecord>& records);

 private:
  const std::string& path_;
  std::uint64_t offset_;
  CsvRecord record_;  // the one that has begun
  std::int64_t line_;
  bool quoted_ = false, blank_ = true;
};

// Where the rows are, in groups of some KiB of text, so that the index is small and a row is found by reading one
// group.
class CsvIndex {
 public:
  // Reads the file once. `skip_first`: the first record is a header and no row. Throws IoError.
  CsvIndex(ByteFile& file, bool skip_first);

  // The first record of the file. Empty (end == begin) if there is none.
  const CsvRecord& first() const { return first_; }
  std::int64_t rows() const { return rows_; }

  struct Group {
    std::uint64_t begin;  // in the file
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
