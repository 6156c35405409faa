#include "syncline/training/fit.h"

#include <algorithm>
#include <bit>
#include <span>

#include "ops/kernels/digest.h"
#include "runtime/placement/differing_value.h"
#include "runtime/placement/strategy.h"
#include "runtime/training/say.h"
#include "syncline/error.h"
#include "syncline/session.h"

namespace syncline::training {
namespace {

void check_batches(const char* caller, const Batches& batches) {
  if (batches.samples < 1 || batches.batch < 1 || !batches.read)
    fail<ValueError>(caller, ": there are ", batches.samples, " samples in batches of ", batches.batch,
                     batches.read ? "" : ", without a function that reads them", "; give at least one of each");
}

void check_outputs(const char* caller, const std::vector<Array>& outputs, const std::vector<std::string>& names) {
  if (outputs.size() != names.size())
    fail<ValueError>(caller, ": the function has ", outputs.size(), " outputs, but ", names.size(),
                     " names are given; give one name for each");
}

// Warns if ranks read different data by mistake: they train, but not as one process would. Unequal shapes end the step.
void warn_of_other_feeds(std::string_view of_what, std::span<const Array> feeds) {
  Strategy* ranks = Session::current().strategy();
  if (ranks == nullptr || ranks->size() == 1 || ranks->feeds_are_local() || feeds.empty()) return;
  std::vector<std::uint64_t> own;  // size and digest of each input
  for (const Array& feed : feeds) {
    own.push_back(feed.bytes());
    own.push_back(kernels::digest(feed.raw(), feed.bytes()));
  }
  const std::vector<std::size_t> unequal = unequal_places(gather_numbers(*ranks, own), own.size());
  if (unequal.empty() || unequal[0] % 2 == 0 || ranks->rank() != 0) return;
  say(join_text("the ranks feed different values for input ", unequal[0] / 2, " of ", of_what,
                ", and each rank uses its rows of its own values; feed the same data on all ranks, or "
                "let each rank feed only its own rows (Strategy::set_feeds_local)"));
}

}  // namespace

void Logs::set(std::string_view name, double value) {
  for (Item& item : items_)
    if (item.first == name) {
      item.second = value;
      return;
    }
  items_.emplace_back(name, value);
}

std::optional<double> Logs::find(std::string_view name) const {
  for (const Item& item : items_)
    if (item.first == name) return item.second;
  return std::nullopt;
}

double Logs::monitored(std::string_view caller, std::string_view name) const {
  if (const auto value = find(name)) return *value;
  std::string names;
  for (const Item& item : items_) names += (names.empty() ? "" : ", ") + item.first;
  fail<ValueError>(caller, ": monitor is '", name, "', but the logs are ", names);
}

std::int64_t Batches::rows(std::int64_t step) const { return std::min(batch, samples - step * batch); }

Logs evaluate(Function& function, const std::vector<std::string>& names, const Batches& batches) {
  check_batches("evaluate", batches);
  std::vector<double> sums(names.size());
  for (std::int64_t step = 0; step < batches.steps(); ++step) {
    const std::vector<Array> feeds = batches.read(0, step);
    if (step == 0) warn_of_other_feeds("the evaluation", feeds);
    const std::vector<Array> outputs = function(feeds);
    check_outputs("evaluate", outputs, names);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += outputs[i].item() * static_cast<double>(batches.rows(step));
  }
  Logs logs;
  for (std::size_t i = 0; i < names.size(); ++i) logs.set(names[i], sums[i] / static_cast<double>(batches.samples));
  return logs;
}

Fit::Fit(FitOptions options) : options_(std::move(options)) {
  check_batches("Fit", options_.batches);
  if (options_.step == nullptr || options_.epochs < 1)
    fail<ValueError>("Fit: ", options_.step == nullptr ? "no step function" : "no epochs", " to train with");
  if (std::ranges::count(options_.callbacks, nullptr) > 0) fail<ValueError>("Fit: a callback is null; leave it out");
  state_.counts.seed = Session::current().seed();
  state_.counts.random_step = Session::current().random_step();
  state_.counts.batch = options_.batches.batch;
  state_.counts.samples = options_.batches.samples;
}

void Fit::set_state(FitState state) {
  const io::TrainingState& there = state.counts;
  if (there.batch != options_.batches.batch || there.samples != options_.batches.samples)
    fail<ValueError>("it was written with batches of ", there.batch, " on ", there.samples,
                     " samples; this run has batches of ", options_.batches.batch, " on ", options_.batches.samples,
                     ": the position in the epoch would differ");
  if (there.step > steps_of_epoch() || (!state.sums.empty() && state.sums.size() != options_.names.size()))
    fail<ValueError>("it is at step ", there.step, " of ", steps_of_epoch(), " and has sums of ", state.sums.size(),
                     " values, but a step has ", options_.names.size(), ": it belongs to another training");
  Session::current().set_random_step(state.counts.random_step);
  Session::current().set_random_runs(state.random_runs);
  state_ = std::move(state);
  before_evaluate_.reset();
}

FitState Fit::state() const {
  FitState state = state_;
  state.random_runs = before_evaluate_ ? *before_evaluate_ : Session::current().random_runs();
  return state;
}

std::int64_t Fit::rows_so_far() const {
  return std::min(state_.counts.step * options_.batches.batch, options_.batches.samples);
}

Logs Fit::averages() const {
  Logs logs;
  for (std::size_t i = 0; i < state_.sums.size(); ++i)
    logs.set(options_.names[i], state_.sums[i] / static_cast<double>(rows_so_far()));
  return logs;
}

Ended Fit::run() {
  stopping_ = paused_ = false;
  before_evaluate_.reset();
  try {
    train();
  } catch (const std::exception& error) {
    for (Callback* callback : options_.callbacks) callback->on_failure(*this, error);
    throw;
  }
  return paused_ ? Ended::kPaused : Ended::kFinished;
}

void Fit::train() {
  for (Callback* callback : options_.callbacks) callback->on_train_begin(*this);
  // A training that was saved at the limit may still have to end its epoch.
  const auto epoch_is_over = [&] { return state_.counts.step == steps_of_epoch(); };
  while (!stopping_ && state_.counts.epoch < options_.epochs && (!at_limit() || epoch_is_over())) {
    for (Callback* callback : options_.callbacks) callback->on_epoch_begin(*this, state_.counts.epoch);
    while (!stopping_ && !epoch_is_over() && !at_limit()) run_step();
    if (epoch_is_over() && !paused_) end_epoch();
  }
  for (Callback* callback : options_.callbacks) callback->on_train_end(*this);
}

void Fit::run_step() {
  for (Callback* callback : options_.callbacks) callback->on_step_begin(*this);
  io::TrainingState& counts = state_.counts;
  const std::vector<Array> feeds = options_.batches.read(counts.epoch, counts.step);
  if (std::has_single_bit(++feeds_read_)) warn_of_other_feeds("the training's step", feeds);
  const std::vector<Array> outputs = (*options_.step)(feeds);
  check_outputs("Fit", outputs, options_.names);
  rows_ = options_.batches.rows(counts.step);
  state_.sums.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double value = outputs[i].item();
    state_.sums[i] += value * static_cast<double>(rows_);
    logs_.set(options_.names[i], value);
  }
  ++counts.step;
  ++counts.global_step;
  counts.random_step = Session::current().random_step();
  for (Callback* callback : options_.callbacks) callback->on_step_end(*this, logs_);
}

void Fit::end_epoch() {
  Logs logs = averages();
  before_evaluate_ = Session::current().random_runs();
  if (options_.evaluate)
    for (const auto& [name, value] : options_.evaluate()) logs.set("val_" + name, value);
  const std::int64_t epoch = state_.counts.epoch++;
  state_.counts.step = 0;
  state_.counts.random_step = Session::current().random_step();
  before_evaluate_.reset();
  state_.sums.clear();
  for (Callback* callback : options_.callbacks) callback->on_epoch_end(*this, epoch, logs);
}

}  // namespace syncline::training
