#include "syncline/training/callbacks/csv_logger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "io/files/append_file.h"
#include "syncline/error.h"
#include "syncline/training/first_rank.h"
#include "syncline/training/fit.h"

namespace syncline::training {
namespace {

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::int64_t epoch_of(const std::string& path, const std::string& row) {
  std::int64_t epoch = 0;
  const char* end = row.data() + row.size();
  const auto [stop, error] = std::from_chars(row.data(), end, epoch);
  if (error != std::errc() || (stop != end && *stop != ','))
    fail<IoError>("cannot add epochs to '", path, "': its row '", row,
                  "' does not begin with an epoch; give another file");
  return epoch;
}

// The header of a table, and the bytes of header and rows before an epoch. A row cut off by a kill is not counted.
struct Table {
  std::string header;
  std::uint64_t size = 0;
};

Table read_table(const std::string& path, std::int64_t before_epoch) {
  Table table;
  std::ifstream file(path);
  for (std::string row; std::getline(file, row) && !file.eof();) {
    if (table.size > 0 && epoch_of(path, row) >= before_epoch) break;
    if (table.size == 0) table.header = row;
    table.size += row.size() + 1;
  }
  return table;
}

}  // namespace

CsvLogger::CsvLogger(std::string path, const comm::Communicator* communicator)
    : path_(std::move(path)), first_(is_first(communicator)) {}

CsvLogger::~CsvLogger() = default;

void CsvLogger::on_train_begin(Fit& fit) {
  begin_ = fit.counts().global_step > 0 ? fit.counts().epoch : 0;
  names_.clear();
  header_.clear();
  pending_.clear();
  file_.reset();
  if (first_) writing_.attempt([&] { open(); });
}

void CsvLogger::open() {
  const Table table = begin_ > 0 ? read_table(path_, begin_) : Table{};
  file_ = std::make_unique<io::AppendFile>(path_);
  file_->cut(table.size);
  header_ = table.header;
}

void CsvLogger::set_columns(const Logs& logs) {
  for (const auto& [name, value] : logs) names_.push_back(name);
  std::sort(names_.begin(), names_.end());
}

void CsvLogger::on_epoch_end(Fit&, std::int64_t epoch, Logs& logs) {
  if (!first_) return;
  if (names_.empty()) set_columns(logs);
  pending_ += fmt::format("{}", epoch);
  for (const std::string& name : names_) {
    const auto value = logs.find(name);
    pending_ += value ? fmt::format(",{}", *value) : ",NA";
  }
  pending_ += '\n';
  writing_.attempt([&] {
    if (!file_) open();
    std::string header = "epoch";
    for (const std::string& name : names_) header.append(",").append(field(name));
    if (!header_.empty() && header_ != header)
      fail<IoError>("cannot add epochs to '", path_, "': its columns are ", header_,
                    ", but those of this training are ", header, "; give another file");
    file_->append(header_.empty() ? header + '\n' + pending_ : pending_);
    header_ = header;
    pending_.clear();
  });
}

}  // namespace syncline::training
