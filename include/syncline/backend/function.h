// Function: maps feeds of placeholders to values and updates variables. Keras's K.function.
//
// The first call with feeds of new shapes makes a plan; later calls with those shapes run it. Under several ranks all
// ranks make the same functions and call them in the same order; each call is one step of the whole job. Feeds are the
// global batch (every rank passes the same arrays), or each rank's own rows if the strategy is set to local feeds.
// The results are the global ones, bitwise equal on every rank.
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

#pragma GCC visibility push(default)
namespace syncline {

class Plan;
class Session;

struct PlaceholderOptions {
  Shape shape{};              // kUnknown for dimensions that depend on the feeds
  std::optional<int> ndim{};  // instead of a shape: this many unknown dimensions
  DType dtype = current_config().floatx;
  bool sparse = false;  // a sparse tensor (syncline/backend/sparse.h), of two dimensions
  std::string name{};
};
// Throws ValueError if shape and ndim contradict each other.
Expr placeholder(PlaceholderOptions options);
bool is_placeholder(const Expr& x);

// A constant tensor. dtype: the array's unless given. With a shape, the array holds as many elements, or one element
// that fills the shape; otherwise throws ShapeError.
Expr constant(const Array& value, std::optional<DType> dtype = {}, const std::optional<Shape>& shape = {},
              std::string name = {});
Expr constant(double value, DType dtype = current_config().floatx, const Shape& shape = {}, std::string name = {});

// True while training: a placeholder to be fed (bool), or the value of set_learning_phase.
Expr learning_phase();
// 0: testing, 1: training. Throws ValueError for any other number.
void set_learning_phase(int value);
// The phase that in_train_phase tests: the session's unless given as a number or a scalar tensor.
class TrainingPhase {
 public:
  TrainingPhase() = default;
  TrainingPhase(const Expr& phase) : phase_(phase) {}
  template <std::integral T>
  TrainingPhase(T training) : known_(training != 0) {}

  // The phase if it is known while the graph is built.
  std::optional<bool> known() const;
  Expr tensor() const { return phase_ ? phase_ : learning_phase(); }

 private:
  Expr phase_;
  std::optional<bool> known_;
};

// x while training, alt otherwise. If the phase is known, only one of two functions is called; otherwise both sides are
// built, and a step computes one of them.
Expr in_train_phase(const TensorOrFunction& x, const TensorOrFunction& alt, const TrainingPhase& training = {});
Expr in_test_phase(const TensorOrFunction& x, const TensorOrFunction& alt, const TrainingPhase& training = {});

class Function {
 public:
  // Throws ValueError if an input is not a placeholder, a variable is updated twice, or an output is sparse.
  Function(std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates = {},
           std::string name = "function");
  ~Function();
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;

  // Takes one value for each input, returns one for each output, computed with the variables' values before the
  // updates. Throws ValueError, ShapeError, DTypeError for wrong feeds (no variable changes then) and CommError from
  // the wire.
  std::vector<Array> operator()(std::span<const Array> feeds);
  std::vector<Array> operator()(std::span<const Feed> feeds);
  std::vector<Array> operator()(std::initializer_list<Feed> feeds) {
    return (*this)(std::span<const Feed>(feeds.begin(), feeds.size()));
  }
  // Writes the results into arrays of the outputs' shapes. After the first call it allocates nothing (a little with
  // sparse inputs).
  void run(std::span<const Array> feeds, std::span<Array> outputs);
  void run(std::span<const Feed> feeds, std::span<Array> outputs);

  // The plan for feeds of these shapes, one line per step. Makes the plan if it is missing. Collective.
  std::string describe(std::span<const Array> feeds);
  std::string describe(std::span<const Feed> feeds);
  // The last plan used; null before the first call. Valid until the next call.
  const Plan* last_plan() const;
  // Bytes of the arena of the plan for feeds of these shapes.
  std::size_t arena_bytes(std::span<const Array> feeds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The value of an expression that needs no feeds; a sparse tensor is made dense, as in Keras.
Array eval(const Expr& x);

}  // namespace syncline
#pragma GCC visibility pop
