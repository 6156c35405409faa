// Feed: the value for one input of a function.
#pragma once

#include <utility>
#include <variant>

#include "syncline/array.h"
#include "syncline/sparse_array.h"

#pragma GCC visibility push(default)
namespace syncline {

// An Array or a SparseArray. Dense and sparse placeholders take both; a feed of the other kind is converted.
class Feed {
 public:
  Feed(Array value) : value_(std::move(value)) {}        // NOLINT: implicit, so that feeds are written as values
  Feed(SparseArray value) : value_(std::move(value)) {}  // NOLINT
  const Array* dense() const { return std::get_if<Array>(&value_); }
  const SparseArray* sparse() const { return std::get_if<SparseArray>(&value_); }

 private:
  std::variant<Array, SparseArray> value_;
};

}  // namespace syncline
#pragma GCC visibility pop
