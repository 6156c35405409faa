// A training under a Job, on ranks that are threads, with requests, resumes and dead ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncline/distributed/communicator.h"
#include "syncline/session.h"
#include "syncline/training/job.h"
#include "syncline/training/resume.h"
#include "tests/io/scratch.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {

// Makes a request when step `before_step` of this run begins, and repeats it until the save begins. kNone: no request.
class Asked : public Requests {
 public:
  Asked(Request request, std::int64_t before_step) : request_(request), step_(before_step) {}
  Request pending() const override { return calls_++ < step_ || saved > 0 ? Request::kNone : request_; }
  void begins(Request request) override { saved += request == Request::kSave ? 1 : 0; }
  std::string name() const override { return request_ == Request::kNone ? "" : "a test"; }
  int saved = 0;

 private:
  Request request_;
  std::int64_t step_;
  mutable std::int64_t calls_ = 0;
};

inline SavedModel model_of(const SmallFit& small) {
  return {"small",
          {{"hidden", {small.kernel, small.bias}}, {"top", {small.top}}},
          small.optimizer.weights,
          small.accumulated};
}

// The options of a run.
struct Part {
  Request request = Request::kNone;
  int rank = 0;                  // makes the request
  std::int64_t before_step = 0;  // of this run: the request comes when it begins
  bool resume = false;
  std::int64_t save_every = 0;
  std::string monitor = {};
  int shards = 1;
  Callback* witness = nullptr;  // on one rank
  int witness_rank = 0;
  std::int64_t accumulated = 1;     // calls in one update
  std::vector<int> node_of_rank{};  // empty: one node
  int parts = 0;                    // of each batch
};

struct Trained {
  Ended ended = Ended::kFinished;
  std::uint64_t digest = 0;
  std::vector<Array> values;
  FitState state;
};

class JobTest : public ::testing::Test {
 protected:
  // Returns rank 0's result; the other ranks must end with the same bits.
  Trained train(int ranks, const Part& part, const std::string& folder = "run", std::int64_t epochs = 3) {
    std::vector<Trained> all(static_cast<std::size_t>(ranks));
    syncline::testing::on_ranks(
        ranks,
        [&](comm::Communicator& communicator) {
          all[static_cast<std::size_t>(communicator.rank())] =
              train_rank(communicator, part, scratch_.path(folder), epochs);
        },
        {.parts = part.parts}, 3, part.node_of_rank);
    for (const Trained& one : all) {
      EXPECT_EQ(one.digest, all[0].digest);
      EXPECT_EQ(one.state.counts, all[0].state.counts);
      EXPECT_EQ(one.ended, all[0].ended);
    }
    return all[0];
  }

  // Trains until rank 0 leaves before this step. Returns the text on standard error.
  std::string die_at(std::int64_t step, int ranks, Part part = {}) {
    Killer killer(step);
    part.witness = &killer;
    ::testing::internal::CaptureStderr();
    EXPECT_THROW(train(ranks, part), Death);
    return ::testing::internal::GetCapturedStderr();
  }

  static Trained train_rank(comm::Communicator& communicator, const Part& part, const std::string& folder,
                            std::int64_t epochs) {
    const auto found = part.resume ? find_checkpoint(folder, &communicator) : nullptr;
    Asked asked(communicator.rank() == part.rank ? part.request : Request::kNone, part.before_step);
    std::vector<Callback*> callbacks;
    if (part.witness != nullptr && communicator.rank() == part.witness_rank) callbacks.push_back(part.witness);
    SmallFit small(epochs, {}, part.accumulated);
    Job job({.folder = folder,
             .save_every = part.save_every,
             .monitor = part.monitor,
             .shards = part.shards,
             .model = model_of(small),
             .communicator = &communicator,
             .requests = &asked});
    callbacks.push_back(&job);
    FitOptions options = small.fit->options();
    options.callbacks = callbacks;
    Fit fit(options);
    if (found) found->resume(model_of(small), fit);
    Trained trained;
    trained.ended = fit.run();
    trained.digest = small.digest();
    for (const Variable& v : small.variables()) trained.values.push_back(get_value(v));
    trained.state = fit.state();
    EXPECT_EQ(asked.saved, part.request == Request::kSave ? 1 : 0);
    return trained;
  }

  nlohmann::json status(const std::string& folder = "run") {
    return nlohmann::json::parse(io::read_file(scratch_.path(folder + "/status.json")));
  }
  io::CheckpointSummary latest(const std::string& folder = "run") {
    return io::summarize_checkpoint(scratch_.path(folder + "/latest"));
  }

  io::Scratch scratch_;
};

}  // namespace syncline::training
