// CsvLogger: a table of the epochs, "epoch" (from 0) and each log by name, as Keras's CSVLogger writes it.
//
// A new training begins a new table. A resumed one adds to it, behind the epochs that it does not do again. The columns
// are the logs of the first epoch; "NA" stands for a log that a later one lacks. A table that cannot be written is one
// line on standard error, and its rows are written when that is possible again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callback.h"
#include "syncline/training/callbacks/best_effort.h"

namespace syncline::io {
class AppendFile;
}  // namespace syncline::io

namespace syncline::training {

class CsvLogger : public Callback {
 public:
  // Rank 0 of the wire writes. Null: one process.
  CsvLogger(std::string path, const comm::Communicator* wire);
  ~CsvLogger() override;

  void on_train_begin(Fit& fit) override;
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override;

 private:
  void open();
  void set_columns(const Logs& logs);

  std::string path_;
  const bool first_;                // this is rank 0
  std::int64_t begin_ = 0;          // the first epoch of this part of the training
  std::vector<std::string> names_;  // of the logs, sorted
  std::string header_;              // of the table that was there; "": there was none
  std::string pending_;             // rows not yet written
  std::unique_ptr<io::AppendFile> file_;
  BestEffort writing_;
};

}  // namespace syncline::training
