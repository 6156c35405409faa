#include "runtime/training/job_saves.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "io/files/atomic_file.h"
#include "runtime/placement/agreement.h"
#include "runtime/plan/plan.h"
#include "runtime/training/say.h"
#include "syncline/distributed/exit_codes.h"
#include "syncline/error.h"
#include "syncline/session.h"
#include "syncline/training/first_rank.h"
#include "syncline/training/fit.h"

namespace syncline::training {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 2s;  // before a save, and between two
constexpr auto kLook = 20ms;

constexpr const char* kNoMemory = "no memory for a copy of the variables to save";

bool ranks_disagree(const std::exception& error) { return dynamic_cast<const DisagreementError*>(&error) != nullptr; }

bool rank_is_missing(const std::exception& error) {
  return dynamic_cast<const CommError*>(&error) != nullptr && !ranks_disagree(error);
}

// The new checkpoint. Prints why an old file cannot be removed, because the new one is saved nevertheless.
template <class Save>
std::string saved_file(Save save) {
  try {
    return save();
  } catch (const io::SurplusError& error) {
    say(error.what());
    return error.path;
  }
}

// A second for each 20 MB: a slow disk.
std::chrono::seconds longest_save(const SavedModel& model) {
  std::int64_t bytes = 0;
  for (const Variable& v : variables_of(model))
    bytes += v.shape().size() * static_cast<std::int64_t>(size_of(v.dtype()));
  return std::chrono::seconds(bytes / 20'000'000);
}

// The lowest living rank of rank 0's node saves. The other ranks wait until it has left, because their exit would make
// mpirun kill it. If it hangs, or is on another node, they wait as long as checkpoints are being written: at most two.
// (After a death mpirun kills the remaining ranks after two seconds.)
void wait_for_survivor(const comm::Communicator& communicator, const io::CheckpointFolder& folder,
                       const SavedModel& model) {
  const auto begun = std::chrono::steady_clock::now();
  auto now = begun, saving = begun;
  while (!communicator.lowest_living() && now - saving < kPause && now - begun < kPause + 2 * longest_save(model)) {
    std::this_thread::sleep_for(kLook);
    now = std::chrono::steady_clock::now();
    if (folder.is_saving()) saving = now;
  }
}

}  // namespace

Job::Saves::Saves(JobOptions options)
    : options_(std::move(options)),
      folder_(options_.folder, options_.keep),
      first_(is_first(options_.communicator)),
      words_(std::make_unique<Words>()) {
  if (options_.shards > 1)
    shards_ = std::make_unique<ShardSaves>(folder_, options_.communicator->rank(), options_.shards);
}

// After a failed step the all-reduce may still use the words, because the communicator outlives this object: keeps them
// for the life of the process.
Job::Saves::~Saves() {
  if (ticket_ != 0) {
    static std::mutex mutex;
    static auto& kept = *new std::vector<std::unique_ptr<Words>>;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(words_));
  }
  if (shards_) shards_->give_up();  // before ~AsyncSaver joins its thread
}

std::string Job::Saves::state() const { return fmt::format("{:016x}\n{}", plan_, setting()); }

void Job::Saves::set_state(const std::string& state) {
  if (std::sscanf(state.c_str(), "%16lx", &plan_before_) != 1)
    fail<ValueError>("'", state, "' is not a plan's fingerprint");
  const std::size_t end = state.find('\n');  // absent in older checkpoints
  setting_before_ = end == state.npos ? "" : state.substr(end + 1);
}

std::string Job::Saves::setting() const { return describe_setting(Session::current(), options_.communicator); }

// Rank 0 only: warns if the result of a resumed training may not be bitwise identical.
void Job::Saves::compare_setting() {
  const std::optional<std::string> saved = std::exchange(setting_before_, {});
  if (!saved) return;
  if (saved->empty())
    return say(join_text("'", options_.folder,
                         "': the checkpoint is from an earlier version and does not record the settings that decide "
                         "the bits: the result may not be bitwise identical"));
  if (const std::string change = change_of_setting(*saved, setting()); !change.empty())
    say(join_text("'", options_.folder, "': ", change));
}

void Job::Saves::on_train_begin(Fit& fit) {
  begun_ = last_failed_ = no_memory_ = false;
  std::string error;
  const auto on_first = [&](auto action) {
    try {
      if (first_ && error.empty()) action();
    } catch (const std::exception& e) {
      error = e.what();
    }
  };
  on_first([&] { begin(fit); });
  greatest_of_all(options_.communicator, "that no rank still ends an earlier training", 0);  // and writes its status
  on_first([&] { begin_status(options_.folder, status_of("running", {}, fit.counts(), "")); });
  error = as_first_rank_says(options_.communicator, "whether there is a folder for checkpoints", std::move(error));
  if (!error.empty()) throw IoError(error);
  if (const std::optional<io::Shard> own = own_shard()) {
    saver_ = std::make_unique<io::AsyncSaver>([this](const io::Checkpoint& checkpoint) { write(checkpoint); });
    if (!is_divided(options_.model)) saver_->prepare(snapshot(options_.model, fit, nullptr, own));
  }
  begun_ = true;
  // A resumed training begins with a checkpoint that is on the disk already.
  resumed_.reset();
  if (fit.counts().global_step > 0) saved_ = resumed_ = fit.counts();
}

void Job::Saves::begin(const Fit& fit) {
  io::make_directory_durably(options_.folder);
  lock_.emplace(options_.folder);
  io::check_names(options_.folder, spec_of(options_.model));
  compare_setting();
  file_ = folder_.latest();
  if (!file_.empty() && fit.counts().global_step == 0)
    say(join_text("'", options_.folder,
                  "': this training begins anew, and its checkpoints replace those of an earlier ",
                  "training (the newest is ", file_, ")",
                  options_.monitor.empty() ? "" : ", but 'best' counts them while they exist",
                  "; resume that one, or give another folder, to keep them"));
}

// The all-reduce of the words overlaps the step.
void Job::Saves::on_step_begin(Fit& fit) {
  if (ticket_ != 0) agreed_request();  // left by a failed step whose error the caller caught
  const Request request = options_.requests != nullptr ? options_.requests->pending() : Request::kNone;
  *words_ = {static_cast<std::int32_t>(request), shards_ ? shards_->state() : 0};
  if (options_.communicator == nullptr || options_.communicator->size() == 1) return;
  static const std::uint64_t names = comm::remember_names("whether a rank was asked to save or to stop");
  const auto step = static_cast<std::uint64_t>(fit.counts().global_step);
  ticket_ = options_.communicator->all_reduce({.step = step, .names = names}, words_.get(), 2, DType::kInt32,
                                              comm::Reduce::kMax);
}

Request Job::Saves::agreed_request() {
  if (ticket_ != 0) options_.communicator->wait(ticket_);
  ticket_ = 0;
  if (shards_) shards_->set_state_of_all(static_cast<ShardSaves::State>(words_->shards));
  return static_cast<Request>(words_->request);
}

void Job::Saves::on_step_end(Fit& fit, const Logs&) {
  note_plan(fit);
  const Request request = agreed_request();
  if (request != Request::kNone && options_.requests != nullptr) options_.requests->begins(request);
  const io::TrainingState& counts = fit.counts();
  const bool due = options_.save_every > 0 && counts.global_step % options_.save_every == 0;
  if (request == Request::kStop) fit.pause();
  else if (request == Request::kSave || (due && counts.step < fit.steps_of_epoch())) save(fit);
}

// Notes the plan of a whole batch. Without a strategy its fingerprint is 0.
void Job::Saves::note_plan(const Fit& fit) {
  if (fit.rows() != fit.options().batches.batch) return;
  plan_ = fit.options().step->last_plan()->fingerprint();
  if (plan_before_ != 0 && plan_ != 0 && plan_ != plan_before_ && first_)
    say(join_text("'", options_.folder,
                  "': the resumed training computes another function than the saved one, or an "
                  "operation has changed: the result may not be bitwise identical"));
  plan_before_ = 0;
}

void Job::Saves::on_epoch_end(Fit& fit, std::int64_t, Logs& logs) {
  if (!options_.monitor.empty()) metric_ = logs.monitored("Job", options_.monitor);
  metric_at_ = fit.counts();
  save(fit);
}

// The snapshot, with the metric if an epoch has just ended.
io::Checkpoint Job::Saves::checkpoint_of(const Fit& fit, comm::Communicator* communicator,
                                         const std::optional<io::Shard>& shard) const {
  io::Checkpoint checkpoint = snapshot(options_.model, fit, communicator, shard);
  if (metric_at_ == fit.counts()) checkpoint.metric = metric_;
  return checkpoint;
}

void Job::Saves::save(const Fit& fit) {
  if (saved_ == fit.counts()) return;
  begin_save(fit);
  saved_ = fit.counts();  // not earlier: begin_save waits for other ranks, which may die
}

void Job::Saves::begin_save(const Fit& fit) {
  no_memory_ = false;
  end_save_of_shards();
  wait_for_index();
  if (shards_) shards_->begin();
  const std::optional<io::Shard> own = own_shard();
  if (!own && !is_divided(options_.model)) return;
  try {
    const io::Checkpoint checkpoint = checkpoint_of(fit, options_.communicator, own);
    if (!own) return;
    wait_for_writer();
    saver_->save(checkpoint);
  } catch (const std::bad_alloc&) {
    no_memory_ = true;
    if (shards_) shards_->cannot_write();
    if (first_) say(join_text(kNoMemory, "; training goes on"));
  }
}

// Prints the error of the previous save.
void Job::Saves::wait_for_writer() {
  try {
    saver_->wait();
  } catch (const std::exception& error) {
    say(join_text(error.what(), "; training goes on"));
  }
}

// Waits until all shards of the previous save are written, and tells rank 0's writing thread.
void Job::Saves::end_save_of_shards() {
  if (!shards_ || !shards_->pending()) return;
  const std::int32_t all =
      greatest_of_all(options_.communicator, "whether the shards of a checkpoint are written", shards_->wait());
  shards_->set_state_of_all(static_cast<ShardSaves::State>(all));
}

// Rank 0's writing thread also removes shards that no index lists, so no rank writes a shard before it is done.
void Job::Saves::wait_for_index() {
  if (!shards_) return;
  if (first_) wait_for_writer();
  const std::int32_t lost = shards_->lost_index() ? 1 : 0;
  if (greatest_of_all(options_.communicator, "whether the index of a checkpoint is written", lost) != 0)
    shards_->discard();
}

// Runs on the saver's thread.
void Job::Saves::write(const io::Checkpoint& checkpoint) {
  const std::string file = saved_file([&] { return shards_ ? shards_->write(checkpoint) : folder_.save(checkpoint); });
  if (!first_) return;
  file_ = file;
  publish_status("running", {}, checkpoint.state, "");
}

void Job::Saves::on_train_end(Fit& fit) {
  save(fit);
  end_save_of_shards();
  // Each save that finds the disk full removes a checkpoint, which makes room for the next try.
  for (int tries = options_.keep.keep_last + options_.keep.keep_best; shards_ && shards_->lacked_room() && tries > 0;
       --tries) {
    saved_.reset();
    save(fit);
    end_save_of_shards();
  }
  std::string error;
  try {
    if (first_) end(fit);
    else if (saver_) saver_->wait();
  } catch (const std::exception& e) {
    error = e.what();
  }
  if (!first_ && !error.empty()) say(error);
  // mpirun kills all ranks once one exits with a code other than 0, so every rank waits for the last write.
  error = as_first_rank_says(options_.communicator, "whether the last checkpoint is written", std::move(error));
  last_failed_ = !error.empty();
  if (last_failed_) throw IoError(error);
  begun_ = false;
}

void Job::Saves::end(const Fit& fit) {
  saver_->wait();
  if (no_memory_) fail<IoError>("checkpoint folder '", options_.folder, "': ", kNoMemory);
  const std::string name = options_.requests != nullptr ? options_.requests->name() : "";
  if (!fit.paused()) publish_status("finished", 0, fit.counts(), "");
  else publish_status("saved", kExitSaved, fit.counts(), name.empty() ? "another rank was asked to stop" : name);
  lock_.reset();  // another job may now own the folder and its status
}

void Job::Saves::publish_status(const std::string& state, std::optional<int> exit_code, const io::TrainingState& counts,
                                const std::string& reason) const {
  const Status status = status_of(state, exit_code, counts, reason);
  if (begun_) write_status(options_.folder, status);
  else begin_status(options_.folder, status);
}

Status Job::Saves::status_of(const std::string& state, std::optional<int> exit_code, const io::TrainingState& counts,
                             const std::string& reason) const {
  return {.state = state,
          .exit_code = exit_code,
          .counts = counts,
          .checkpoint = file_,
          .ranks = options_.communicator == nullptr ? 1 : options_.communicator->size(),
          .reason = reason};
}

void Job::Saves::on_failure(Fit& fit, const std::exception& error) noexcept {
  if (!begun_ && !lock_) return;
  try {
    if (options_.communicator == nullptr || options_.communicator->lowest_living()) save_after_failure(fit, error);
    else if (rank_is_missing(error)) wait_for_survivor(*options_.communicator, folder_, options_.model);
    else if (!ranks_disagree(error) && !last_failed_) publish_own_error(fit, error);
  } catch (const std::exception& e) {
    say(e.what());
  }
}

// Runs before this rank leaves, because the lowest living rank may see only that it has left.
void Job::Saves::publish_own_error(const Fit& fit, const std::exception& error) {
  if (!has_status(options_.folder)) return;
  file_ = folder_.latest();
  publish_status("failed", exit_code_of(error), fit.counts(), error.what());
}

// Runs on the lowest living rank, whose variables are those after the last finished step. If the ranks disagree, it is
// unknown whose variables are right, and nothing is saved.
void Job::Saves::save_after_failure(const Fit& fit, const std::exception& error) {
  const bool sound = !ranks_disagree(error);
  std::string reason = error.what();
  try {
    const bool whole = save_before_is_whole(fit);
    if (sound && !whole && !last_failed_) save_now(fit);
  } catch (const std::exception& e) {
    say(e.what());
    reason += join_text("; ", e.what());
  }
  if (file_.empty()) file_ = folder_.latest();
  // After the death of a rank the job may restart: from the checkpoint or, if there is none, from the beginning. There
  // is no exit code: mpirun exits with that of the dead rank.
  if (rank_is_missing(error)) publish_status("saved", {}, counts_of_file().value_or(fit.counts()), reason);
  else publish_status("failed", exit_code_of(error), fit.counts(), reason);
}

// Where a restart resumes: scripts compare these counts to detect a job that makes no progress. None: unknown.
std::optional<io::TrainingState> Job::Saves::counts_of_file() const {
  if (file_.empty()) return io::TrainingState{};
  try {
    const std::string name = std::filesystem::path(file_).filename().string();
    return io::summarize_checkpoint(options_.folder + "/" + name, io::KerasFiles::kRefused).state;
  } catch (const std::exception& error) {
    say(error.what());
    return {};
  }
}

// Waits for the save under way. Returns whether it saved the current step, which only rank 0 knows.
bool Job::Saves::save_before_is_whole(const Fit& fit) {
  try {
    if (shards_) shards_->give_up();
    if (saver_) saver_->wait();
  } catch (const std::exception& error) {
    say(error.what());
    return false;
  }
  return first_ && !no_memory_ && saved_ == fit.counts();
}

void Job::Saves::save_now(const Fit& fit) {
  const std::int64_t step = fit.counts().global_step;
  if (step == 0) return;
  if (is_divided(options_.model))
    fail<IoError>("step ", step, " cannot be saved: the value of a variable is divided over ranks that are gone");
  file_ = folder_.latest();
  if (resumed_ == fit.counts() && counts_of_file() == fit.counts()) return;  // keeps its metric, which is unknown here
  file_ = saved_file([&] { return folder_.save(checkpoint_of(fit, nullptr, io::Shard{})); });
  const int rank = options_.communicator == nullptr ? 0 : options_.communicator->rank();
  say(join_text("rank ", rank, " has saved the last finished step, ", step, ", in ", file_));
}

}  // namespace syncline::training
