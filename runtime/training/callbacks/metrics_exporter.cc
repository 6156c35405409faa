#include "syncline/training/callbacks/metrics_exporter.h"

#include <sys/stat.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/training/callbacks/metrics_file.h"
#include "syncline/training/first_rank.h"
#include "syncline/training/fit.h"

namespace syncline::training {
namespace {

// The states of status.json.
constexpr std::array kStates{"running", "finished", "saved", "failed"};

io::Gauge of_states(std::string_view now) {
  io::Gauge gauge{"syncline_state", "1 for the state that the training is in", {}};
  for (const char* state : kStates) gauge.samples.push_back({{{"state", state}}, state == now ? 1.0 : 0.0});
  return gauge;
}

io::Gauge of_logs(const Logs& logs) {
  io::Gauge gauge{
      "syncline_log", "the newest value of each log; means over the epoch so far, or over the evaluation", {}};
  for (const auto& [name, value] : logs) gauge.samples.push_back({{{"name", name}}, value});
  return gauge;
}

double seconds_of(const timespec& time) { return static_cast<double>(time.tv_sec) + 1e-9 * time.tv_nsec; }

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::optional<double> last_save(const std::string& folder) {
  struct stat file {};
  if (folder.empty() || ::stat((folder + "/latest").c_str(), &file) != 0) return std::nullopt;
  return seconds_of(file.st_mtim);
}

}  // namespace

MetricsExporter::MetricsExporter(MetricsExporterOptions options)
    : options_(std::move(options)), first_(is_first(options_.communicator)) {}

void MetricsExporter::on_train_begin(Fit& fit) {
  logs_ = {};
  rows_ = 0;
  speed_ = 0;
  written_ = Clock::now();
  write(fit, "running");
}

void MetricsExporter::on_step_end(Fit& fit, const Logs&) {
  rows_ += fit.rows();
  if (!first_ || Clock::now() - written_ < options_.pause) return;
  for (const auto& [name, value] : fit.averages()) logs_.set(name, value);
  write(fit, "running");
}

void MetricsExporter::on_epoch_end(Fit& fit, std::int64_t, Logs& logs) {
  for (const auto& [name, value] : logs) logs_.set(name, value);
  write(fit, "running");
}

void MetricsExporter::on_train_end(Fit& fit) { write(fit, fit.paused() ? "saved" : "finished"); }

void MetricsExporter::on_failure(Fit& fit, const std::exception&) noexcept { write(fit, "failed"); }

void MetricsExporter::write(const Fit& fit, const char* state) {
  if (!first_) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - written_).count();
  if (rows_ > 0) speed_ = static_cast<double>(rows_) / seconds;
  rows_ = 0;
  written_ = Clock::now();
  const auto one = [](const char* name, const char* help, auto value, const char* unit = "") {
    return io::Gauge{name, help, {{{}, static_cast<double>(value)}}, unit};
  };
  const io::TrainingState& counts = fit.counts();
  std::vector<io::Gauge> gauges{
      one("syncline_epochs", "finished epochs", counts.epoch),
      one("syncline_epochs_wanted", "epochs of the whole training", fit.options().epochs),
      one("syncline_steps", "finished steps since the beginning", counts.global_step),
      one("syncline_ranks", "processes that train together",
          options_.communicator == nullptr ? 1 : options_.communicator->size()),
      one("syncline_samples_per_second", "rows of all ranks per second, measured recently", speed_),
      one("syncline_written_timestamp_seconds", "when this file was written", now(), "seconds"),
      of_logs(logs_),
      of_states(state)};
  if (const auto saved = last_save(options_.checkpoints))
    gauges.push_back(
        one("syncline_checkpoint_timestamp_seconds", "when the newest checkpoint was written", *saved, "seconds"));
  writing_.attempt([&] { io::write_metrics_file(options_.path, gauges); });
}

}  // namespace syncline::training
