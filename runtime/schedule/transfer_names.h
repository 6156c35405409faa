// What a plan's transfers are for, in the words of its user: "gradients of dense_1/kernel, dense_1/bias". For errors.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/placement/collectives.h"
#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline {

class TransferNames {
 public:
  // Of a placed graph: the roots are the outputs' values, then the updates'.
  TransferNames(std::span<const Expr> roots, std::span<const Update> updates);

  // `transfers`: AllReduce or AllGather, those of one message.
  std::string of(std::span<const Expr> transfers) const;

 private:
  struct Use {
    std::string name;       // of the variable or the output that needs it
    bool gradient = false;  // the variable is among what it was computed from, and has its shape
    bool updates = false;
  };
  void note(const Expr& root, const Use& use);

  std::unordered_map<Expr, Use, ExprHash> uses_;
};

}  // namespace syncline
