#include "syncline/training/callbacks/tensor_board.h"

#include "runtime/training/callbacks/event_file.h"
#include "syncline/error.h"
#include "syncline/training/first_rank.h"
#include "syncline/training/fit.h"

namespace syncline::training {
namespace {

using namespace std::chrono_literals;

// Flush after this time or this many bytes: viewers need no events sooner, and smaller writes waste time.
constexpr auto kPause = 2s;
constexpr std::size_t kMostHeld = std::size_t{64} << 10;

}  // namespace

TensorBoard::TensorBoard(TensorBoardOptions options)
    : options_(std::move(options)), first_(is_first(options_.communicator)) {
  if (options_.folder.empty()) fail<ValueError>("TensorBoard: no folder; give one for the event files");
  if (options_.every < 0) fail<ValueError>("TensorBoard: every is ", options_.every, "; give 0 or more steps");
}

TensorBoard::~TensorBoard() = default;

void TensorBoard::on_train_begin(Fit& fit) {
  const io::TrainingState& counts = fit.counts();
  // A run resumed after the last step of an unfinished epoch repeats the epoch's end, at the same step.
  first_step_ = counts.global_step + (counts.step == fit.steps_of_epoch() ? 0 : 1);
  train_.reset();
  validation_.reset();
  flushed_ = std::chrono::steady_clock::now();
  if (first_) writing_.attempt([&] { made(train_, "train"); });
}

io::EventFile& TensorBoard::made(std::unique_ptr<io::EventFile>& file, const char* folder) {
  if (!file) file = std::make_unique<io::EventFile>(options_.folder + "/" + folder, first_step_);
  return *file;
}

void TensorBoard::on_step_end(Fit& fit, const Logs& logs) {
  const std::int64_t step = fit.counts().global_step;
  if (!train_ || options_.every == 0 || step % options_.every != 0) return;
  for (const auto& [name, value] : logs) train_->add_scalar("batch_" + name, step, value);
  if (train_->held() >= kMostHeld || std::chrono::steady_clock::now() - flushed_ >= kPause)
    writing_.attempt([&] { flush(); });
}

void TensorBoard::on_epoch_end(Fit& fit, std::int64_t, Logs& logs) {
  if (!first_) return;
  const std::int64_t step = fit.counts().global_step;
  writing_.attempt([&] {
    for (const auto& [name, value] : logs) {
      const bool validation = name.starts_with("val_");
      io::EventFile& file = validation ? made(validation_, "validation") : made(train_, "train");
      file.add_scalar("epoch_" + name.substr(validation ? 4 : 0), step, value);
    }
    flush();
  });
}

void TensorBoard::on_train_end(Fit&) {
  writing_.attempt([&] { flush(); });
}

void TensorBoard::on_failure(Fit&, const std::exception&) noexcept {
  writing_.attempt([&] { flush(); });
}

void TensorBoard::flush() {
  flushed_ = std::chrono::steady_clock::now();
  if (train_) train_->flush();
  if (validation_) validation_->flush();
}

}  // namespace syncline::training
