// History: the logs of each epoch, kept in memory. Of a resumed training, those since it was resumed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "syncline/training/callback.h"

namespace syncline::training {

class History : public Callback {
 public:
  const std::vector<std::int64_t>& epochs() const { return epochs_; }
  // By name of the log; one for each epoch whose logs had it.
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
