// The three networks of the example, written as a user of the C++ backend would: a layer is a few lines of backend
// functions.
#pragma once

#include <string>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/training/snapshot.h"

namespace syncline::examples {

using training::NamedLayer;

struct Model {
  Expr logits;  // (samples, classes)
  std::vector<NamedLayer> layers;
  std::vector<Variable> weights() const;
};

// x: floating (samples, 28, 28). Dropout is on while training (learning_phase).
Model softmax_regression(const Expr& x, int classes = 10);
Model mlp(const Expr& x, const std::vector<int>& units, double dropout_level, int classes = 10);
// conv 32 3x3, conv 64 3x3, max-pool 2, dropout 0.25, dense 128, dropout 0.5, dense
Model cnn(const Expr& x, int classes = 10);

// By name: softmax, mlp (784-512-512-10 with dropout 0.2) or cnn. Throws ValueError for another name.
Model make_model(const std::string& name, const Expr& x);

// Scalars: mean crossentropy, and the fraction of correct predictions. labels: integers (samples,).
Expr mean_loss(const Expr& labels, const Expr& logits);
Expr accuracy(const Expr& labels, const Expr& logits);

}  // namespace syncline::examples
