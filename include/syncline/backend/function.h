// Function: from placeholders to values, with updates of variables on the way. What Keras calls K.function.
//
// The first call with feeds of new shapes makes a plan; later calls with those shapes run it. Under several ranks all
// ranks make the same functions and call them in the same order; each call is one step of the whole job, feeds are the
// global batch (every rank hands over the same arrays) unless the distributor was told that each rank brings its own
// rows, and the results are the global ones, bit for bit the same on every rank.
//
// Ownership: a function keeps its graph alive, nothing else. One thread at a time calls the functions of a session.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/variable.h"
#include "syncline/config.h"
#include "syncline/expr.h"
#include "syncline/feed.h"

namespace syncline {

class Plan;
class Session;

struct PlaceholderOptions {
  Shape shape{};              // kUnknown for dimensions that come with the feeds
  std::optional<int> ndim{};  // instead of a shape: so many unknown dimensions
  DType dtype = current_config().floatx;
  bool sparse = false;  // a sparse tensor (syncline/backend/sparse.h), of two dimensions
  std::string name{};
};
// Throws ValueError if shape and ndim do not agree.
Expr placeholder(PlaceholderOptions options);
bool is_placeholder(const Expr& x);

// A tensor that never changes. dtype: the array's unless given. With a shape, the array holds as many elements, or one
// that fills it. Throws ShapeError otherwise.
Expr constant(const Array& value, std::optional<DType> dtype = {}, const std::optional<Shape>& shape = {},
              std::string name = {});
Expr constant(double value, DType dtype = current_config().floatx, const Shape& shape = {}, std::string name = {});

// True while training: a placeholder to be fed (bool), or what set_learning_phase said.
Expr learning_phase();
// 0: testing, 1: training. Throws ValueError for any other number.
void set_learning_phase(int value);
// The phase that in_train_phase asks for: the session's unless given; a number or a scalar tensor.
class TrainingPhase {
 public:
  TrainingPhase() = default;
  TrainingPhase(const Expr& phase) : phase_(phase) {}
  template <std::integral T>
  TrainingPhase(T training) : known_(training != 0) {}

  // The phase if it is known already.
  std::optional<bool> known() const;
  Expr tensor() const { return phase_ ? phase_ : learning_phase(); }

 private:
  Expr phase_;
  std::optional<bool> known_;
};

// x while training, alt otherwise. Of functions only one is called if the phase is known; otherwise both sides are
// built, and a step computes the one that it takes.
Expr in_train_phase(const TensorOrFunction& x, const TensorOrFunction& alt, const TrainingPhase& training = {});
Expr in_test_phase(const TensorOrFunction& x, const TensorOrFunction& alt, const TrainingPhase& training = {});

class Function {
 public:
  // Throws ValueError if an input is no placeholder, a variable is updated twice, or an output is sparse.
  Function(std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates = {},
           std::string name = "function");
  ~Function();
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;

  // One value for each input. Returns one for each output, computed with the variables' values from before the updates.
  // Throws ValueError, ShapeError, DTypeError for wrong feeds (nothing is changed then) and CommError from the wire.
  std::vector<Array> operator()(std::span<const Array> feeds);
  std::vector<Array> operator()(std::span<const Feed> feeds);
  std::vector<Array> operator()(std::initializer_list<Feed> feeds) {
    return (*this)(std::span<const Feed>(feeds.begin(), feeds.size()));
  }
  // The same into arrays that have the outputs' shapes already: allocates nothing after the first call.
  // (With sparse inputs it allocates a little.)
  void run(std::span<const Array> feeds, std::span<Array> outputs);
  void run(std::span<const Feed> feeds, std::span<Array> outputs);

  // The plan for such feeds, a line a step. Makes it if need be; under several ranks all ranks must ask.
  std::string describe(std::span<const Array> feeds);
  std::string describe(std::span<const Feed> feeds);
  // The plan that was used last; null before the first call. Valid until the next call.
  const Plan* last_plan() const;
  // Bytes of the arena that the plan for such feeds computes in.
  std::size_t arena_bytes(std::span<const Array> feeds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The value of an expression that needs no feeds; a sparse tensor's with its zeros, as Keras does.
Array eval(const Expr& x);

}  // namespace syncline
