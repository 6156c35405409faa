#include "syncline/training/callbacks/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/training/callbacks/saved_state.h"
#include "syncline/error.h"
#include "syncline/training/fit.h"

namespace syncline::training {
namespace {

constexpr const char* kRate = "learning_rate";

double rate_of(const Variable& learning_rate) { return get_value(learning_rate).item(); }

}  // namespace

LearningRateScheduler::LearningRateScheduler(Variable learning_rate, Schedule schedule)
    : learning_rate_(std::move(learning_rate)), schedule_(std::move(schedule)) {}

std::string LearningRateScheduler::state() const {
  return nlohmann::json{{"epoch", asked_}, {kRate, text_of(rate_of(learning_rate_))}}.dump();
}

void LearningRateScheduler::set_state(const std::string& text) {
  read_state(name(), text, [&](const nlohmann::json& state) {
    asked_ = state.at("epoch").get<std::int64_t>();
    set_value(learning_rate_, number_in(state.at(kRate)));
  });
  resumed_ = true;
}

void LearningRateScheduler::on_train_begin(Fit& fit) {
  if (!std::exchange(resumed_, false) && fit.counts().global_step == 0) asked_ = -1;
}

void LearningRateScheduler::on_epoch_begin(Fit&, std::int64_t epoch) {
  if (epoch == asked_) return;
  const double rate = schedule_(epoch, rate_of(learning_rate_));
  if (!std::isfinite(rate))
    fail<ValueError>("LearningRateScheduler: the schedule gives ", rate, " for epoch ", epoch,
                     "; it must give a finite number");
  set_value(learning_rate_, rate);
  asked_ = epoch;
}

void LearningRateScheduler::on_epoch_end(Fit&, std::int64_t, Logs& logs) { logs.set("lr", rate_of(learning_rate_)); }

ReduceLROnPlateau::ReduceLROnPlateau(Variable learning_rate, ReduceLROnPlateauOptions options)
    : learning_rate_(std::move(learning_rate)),
      options_(std::move(options)),
      monitor_("ReduceLROnPlateau", options_.monitor, options_.mode) {
  if (options_.factor >= 1)
    fail<ValueError>("ReduceLROnPlateau: factor is ", options_.factor, "; give a factor below 1");
  reset();
}

std::string ReduceLROnPlateau::state() const {
  return nlohmann::json{
      {"best", text_of(best_)}, {"wait", wait_}, {"cooldown", cooldown_}, {kRate, text_of(rate_of(learning_rate_))}}
      .dump();
}

void ReduceLROnPlateau::set_state(const std::string& text) {
  read_state(name(), text, [&](const nlohmann::json& state) {
    best_ = number_in(state.at("best"));
    wait_ = state.at("wait").get<std::int64_t>();
    cooldown_ = state.at("cooldown").get<std::int64_t>();
    set_value(learning_rate_, number_in(state.at(kRate)));
  });
}

void ReduceLROnPlateau::on_train_begin(Fit& fit) {
  if (fit.counts().global_step == 0) reset();
}

void ReduceLROnPlateau::reset() {
  best_ = monitor_.worst();
  wait_ = cooldown_ = 0;
}

void ReduceLROnPlateau::on_epoch_end(Fit&, std::int64_t, Logs& logs) {
  logs.set("lr", rate_of(learning_rate_));
  const double value = monitor_.of(logs);
  if (cooldown_ > 0) {
    --cooldown_;
    wait_ = 0;
  }
  if (monitor_.better(value, monitor_.improved(best_, options_.min_delta))) {
    best_ = value;
    wait_ = 0;
  } else if (cooldown_ == 0 && ++wait_ >= options_.patience) {
    reduce();
  }
}

void ReduceLROnPlateau::reduce() {
  const double rate = rate_of(learning_rate_);
  if (rate <= options_.min_lr) return;
  set_value(learning_rate_, std::max(rate * options_.factor, options_.min_lr));
  cooldown_ = options_.cooldown;
  wait_ = 0;
}

}  // namespace syncline::training
