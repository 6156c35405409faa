#include "syncline/training/callbacks/early_stopping.h"

#include "runtime/training/callbacks/saved_state.h"
#include "syncline/error.h"
#include "syncline/training/fit.h"

namespace syncline::training {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)), monitor_("EarlyStopping", options_.monitor, options_.mode) {
  for (const Variable& v : options_.restore) kept_.push_back(variable(get_value(v), {.name = "best/" + v.name()}));
  if (!kept_.empty()) kept_.push_back(variable(-1, {.dtype = DType::kInt64, .name = "best/epoch"}));
  reset();
}

void EarlyStopping::reset() {
  best_ = options_.baseline.value_or(monitor_.worst());
  best_epoch_ = -1;
  wait_ = 0;
  stopped_.reset();
}

std::string EarlyStopping::state() const {
  nlohmann::json state{{"best", text_of(best_)}, {"best_epoch", best_epoch_}, {"wait", wait_}};
  if (stopped_) state["stopped"] = *stopped_;
  return state.dump();
}

void EarlyStopping::set_state(const std::string& text) {
  read_state(name(), text, [&](const nlohmann::json& state) {
    best_ = number_in(state.at("best"));
    best_epoch_ = state.at("best_epoch").get<std::int64_t>();
    wait_ = state.at("wait").get<std::int64_t>();
    stopped_.reset();
    if (state.contains("stopped")) stopped_ = state["stopped"].get<std::int64_t>();
  });
}

void EarlyStopping::on_train_begin(Fit& fit) {
  if (fit.counts().global_step == 0) reset();
  if (stopped_) return fit.stop();
  if (!kept_.empty() && best_epoch_ >= 0 && get_value(kept_.back()).item() != static_cast<double>(best_epoch_))
    fail<ValueError>("EarlyStopping: the checkpoint lacks the values after epoch ", best_epoch_ + 1,
                     ", which are to be restored; add kept() to the checkpoint's variables");
}

void EarlyStopping::on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) {
  const double value = monitor_.of(logs);
  if (monitor_.better(monitor_.improved(value, -options_.min_delta), best_)) {
    best_ = value;
    wait_ = 0;
    keep(epoch);
  } else if (++wait_ >= options_.patience) {
    stopped_ = epoch;
    if (best_epoch_ >= 0) restore();
    fit.stop();
  }
}

void EarlyStopping::keep(std::int64_t epoch) {
  best_epoch_ = epoch;
  if (kept_.empty()) return;
  for (std::size_t i = 0; i < options_.restore.size(); ++i) set_value(kept_[i], get_value(options_.restore[i]));
  set_value(kept_.back(), epoch);
}

void EarlyStopping::restore() const {
  for (std::size_t i = 0; i < options_.restore.size(); ++i) set_value(options_.restore[i], get_value(kept_[i]));
}

}  // namespace syncline::training
