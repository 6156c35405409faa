// History: the logs of each epoch, kept in memory. In a resumed training: the epochs since the resume.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "syncline/training/callback.h"

#pragma GCC visibility push(default)
namespace syncline::training {

class History : public Callback {
 public:
  const std::vector<std::int64_t>& epochs() const { return epochs_; }
  // By name of the log; one value for each epoch that has the log.
  const std::map<std::string, std::vector<double>>& values() const { return values_; }

  void on_train_begin(Fit&) override {
    epochs_.clear();
    values_.clear();
  }
  void on_epoch_end(Fit&, std::int64_t epoch, Logs& logs) override {
    epochs_.push_back(epoch);
    for (const auto& [name, value] : logs) values_[name].push_back(value);
  }

 private:
  std::vector<std::int64_t> epochs_;
  std::map<std::string, std::vector<double>> values_;
};

}  // namespace syncline::training
#pragma GCC visibility pop
