#include "tests/runtime/training/callbacks/scripted_fit.h"

#include <optional>

namespace syncline::training {
namespace {

// Pauses the training after `epochs` epochs; 0: never.
class PauseAfter : public Callback {
 public:
  explicit PauseAfter(std::int64_t epochs) : left_(epochs) {}
  void on_epoch_end(Fit& fit, std::int64_t, Logs&) override {
    if (--left_ == 0) fit.pause();
  }

 private:
  std::int64_t left_;
};

}  // namespace

ScriptedFit::ScriptedFit(const std::vector<double>& values, std::string log, double rate)
    : losses(values),
      name(std::move(log)),
      weight(variable(0, {.dtype = DType::kFloat64, .name = "weight"})),
      learning_rate(variable(rate, {.dtype = DType::kFloat64, .name = "rate"})),
      step({}, {}) {
  const Expr x = placeholder({.shape = Shape{}, .dtype = DType::kFloat64});
  step = Function({x}, {x}, {update_add(weight, 1)}, "train");
}

FitState ScriptedFit::run(std::vector<Callback*> callbacks, const FitState* state, std::int64_t epochs) {
  PauseAfter pause(epochs);
  callbacks.push_back(&pause);
  Fit fit({.step = &step,
           .names = {name},
           .batches = {.samples = 1,
                       .batch = 1,
                       .read =
                           [&](std::int64_t epoch, std::int64_t) {
                             return std::vector<Array>{Array::scalar(losses[static_cast<std::size_t>(epoch)])};
                           }},
           .epochs = static_cast<std::int64_t>(losses.size()),
           .evaluate = {},
           .callbacks = std::move(callbacks)});
  if (state != nullptr) fit.set_state(*state);
  fit.run();
  return fit.state();
}

}  // namespace syncline::training
