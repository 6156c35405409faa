// CsvLogger: a table of the epochs, "epoch" (from 0) and each log by name, in the format of Keras's CSVLogger.
//
// A new training starts a new table. A resumed training appends to the table after the epochs that it does not repeat.
// The columns are the logs of the first epoch; "NA" marks a log missing in a later epoch. If writing fails, it prints
// one line on standard error and keeps the rows until writing succeeds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/callbacks/best_effort.h"

#pragma GCC visibility push(default)
namespace syncline::io {
class AppendFile;
}  // namespace syncline::io

namespace syncline::training {

class CsvLogger : public Callback {
 public:
  // Rank 0 of the communicator writes. Null: one process.
  CsvLogger(std::string path, const comm::Communicator* communicator);
  ~CsvLogger() override;

  void on_train_begin(Fit& fit) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;

 private:
  void open();
  void set_columns(const Logs& logs);

  std::string path_;
  const bool first_;                // true on rank 0
  std::int64_t begin_ = 0;          // the first epoch since the start or the resume
  std::vector<std::string> names_;  // names of the logs, sorted
  std::string header_;              // of the existing table; "": none
  std::string pending_;             // rows not yet written
  std::unique_ptr<io::AppendFile> file_;
  BestEffort writing_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
