// The op cases on 2 and 3 ranks (threads): values and gradients equal those of one rank for all placements of operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/convert.h"
#include "comm/local/local_communicator.h"
#include "ops/graph/leaf.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "tests/ops/gradient_check.h"
#include "tests/ops/op_case.h"

namespace syncline::testing {
namespace {

// The placement of an operand.
enum class Feed { kReplicated, kSplit, kSplitLast, kPartial };
constexpr Feed kFeeds[] = {Feed::kReplicated, Feed::kSplit, Feed::kSplitLast, Feed::kPartial};

std::string name_of(const std::vector<Feed>& feeds) {
  std::string text;
  for (const Feed feed : feeds)
    text += feed == Feed::kReplicated  ? " replicated"
            : feed == Feed::kSplit     ? " split(0)"
            : feed == Feed::kSplitLast ? " split(last)"
                                       : " partial";
  return text;
}

bool possible(Feed feed, const Array& value) {
  if (feed == Feed::kSplit) return value.shape().ndim() > 0;
  if (feed == Feed::kSplitLast) return value.shape().ndim() > 1;
  return feed == Feed::kReplicated || value.dtype() != DType::kBool;
}

// x[..., last] -> x[last, ...]
Array last_axis_first(const Array& value) {
  const Expr x = constant(value);
  std::vector<int> pattern{x.ndim() - 1};
  for (int axis = 0; axis + 1 < x.ndim(); ++axis) pattern.push_back(axis);
  return eval(permute_dimensions(x, pattern)).copy();
}

// `terms` arrays that sum to the value (floats: up to rounding), stacked on a new axis 0.
Array terms_of(const Array& value, std::int64_t terms) {
  Shape shape = value.shape();
  shape.insert(0, terms);
  Array stacked = random_array(value.dtype(), shape, -2, 2, 5);
  with_dtype(value.dtype(), [&]<class T>(T) {
    for (std::int64_t i = 0; i < value.size(); ++i) {
      T rest = value.data<T>()[i];
      for (std::int64_t t = 1; t < terms; ++t)
        rest = static_cast<T>(wrapping(rest) - wrapping(stacked.data<T>()[t * value.size() + i]));
      stacked.data<T>()[i] = rest;
    }
  });
  return stacked;
}

struct Operand {
  Expr value;        // the op's operand
  Expr placeholder;  // empty: nothing is fed
  Array feed;
};

Operand make_operand(const Array& value, Feed feed, std::int64_t rows) {
  if (feed == Feed::kReplicated) return {variable(value), {}, {}};
  Operand o;
  o.feed = feed == Feed::kSplit ? value : feed == Feed::kSplitLast ? last_axis_first(value) : terms_of(value, rows);
  o.placeholder = placeholder({.shape = o.feed.shape(), .dtype = o.feed.dtype()});
  o.value = o.placeholder;
  if (feed == Feed::kPartial) o.value = sum(o.placeholder, {0});
  if (feed == Feed::kSplitLast) {
    std::vector<int> back;
    for (int axis = 1; axis < o.feed.shape().ndim(); ++axis) back.push_back(axis);
    back.push_back(0);
    o.value = permute_dimensions(o.placeholder, back);
  }
  return o;
}

// The op's value, then its gradients.
std::vector<Array> compute(const OpCase& row, const std::vector<Array>& values, const std::vector<Feed>& how) {
  std::int64_t rows = 5;
  for (std::size_t i = 0; i < how.size(); ++i)
    if (how[i] == Feed::kSplit || how[i] == Feed::kSplitLast) {
      rows = how[i] == Feed::kSplit ? values[i].shape()[0] : values[i].shape().back();
      break;
    }
  std::vector<Expr> x, fed, wrt, roots;
  std::vector<Array> feeds;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Operand o = make_operand(values[i], how[i], rows);
    x.push_back(o.value);
    if (is_floating(values[i].dtype())) wrt.push_back(o.value);
    if (!o.placeholder) continue;
    fed.push_back(o.placeholder);
    feeds.push_back(o.feed);
  }
  roots.push_back(row.build(x));
  if (row.gradient && is_floating(roots[0].dtype()))
    for (const Expr& dx : gradients(weighted_sum(roots[0], 7), wrt))
      if (dx) roots.push_back(dx);
  std::vector<Array> results = Function(fed, roots)(feeds);
  for (Array& result : results) result = result.copy();
  return results;
}

std::string difference(const std::vector<Array>& wanted, const std::vector<Array>& got) {
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k].shape() != got[k].shape())
      return join_text("output ", k, " has the shape ", got[k].shape(), ", wanted ", wanted[k].shape());
    const Tensor a = tensor_of(wanted[k]), b = tensor_of(got[k]);
    const DType dtype = wanted[k].dtype();
    const double tolerance = dtype == DType::kFloat16 ? 2e-3 : dtype == DType::kFloat32 ? 1e-5 : 1e-10;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const double x = a.values[i], y = b.values[i];
      const bool same = std::isfinite(x) ? std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x))
                                         : x == y || (std::isnan(x) && std::isnan(y));
      if (!same) return join_text("output ", k, ", element ", i, ": ", y, ", wanted ", x);
    }
  }
  return {};
}

// For one or two operands, every combination. For more, each placement for all operands, and for one operand with the
// others replicated.
std::vector<std::vector<Feed>> combinations(const std::vector<Array>& values) {
  std::vector<std::vector<Feed>> found;
  auto offer = [&](const std::vector<Feed>& how) {
    for (std::size_t i = 0; i < how.size(); ++i)
      if (!possible(how[i], values[i])) return;
    found.push_back(how);
  };
  if (values.size() == 1)
    for (const Feed a : kFeeds) offer({a});
  if (values.size() == 2)
    for (const Feed a : kFeeds)
      for (const Feed b : kFeeds) offer({a, b});
  if (values.size() < 3) return found;
  for (const Feed a : kFeeds) {
    offer(std::vector<Feed>(values.size(), a));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<Feed> one(values.size(), Feed::kReplicated);
      one[i] = a;
      offer(one);
    }
  }
  return found;
}

class OpPlacement : public ::testing::TestWithParam<std::size_t> {};

void expect_same_on_ranks(const OpCase& row, const std::vector<Array>& values,
                          const std::vector<std::vector<Feed>>& ways, int size) {
  std::vector<std::vector<Array>> wanted;
  for (const std::vector<Feed>& how : ways) {
    Session alone(3);
    SessionScope scope(alone);
    wanted.push_back(compute(row, values, how));
  }
  std::mutex mutex;
  std::string problems;
  comm::spawn_ranks(size, [&](comm::Communicator& communicator) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Session session(3);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      const std::string problem = difference(wanted[i], compute(row, values, ways[i]));
      std::lock_guard lock(mutex);
      if (!problem.empty())
        problems +=
            join_text("rank ", communicator.rank(), " of ", size, ", operands", name_of(ways[i]), ": ", problem, "\n");
    }
  });
  EXPECT_EQ(problems, "");
}

TEST_P(OpPlacement, RanksComputeWhatOneComputes) {
  const OpCase& row = all_cases()[GetParam()];
  if (!row.placement) GTEST_SKIP();
  const std::vector<Array> values = make_inputs(row.inputs, 1, /*wide=*/true);
  for (const int size : {2, 3}) expect_same_on_ranks(row, values, combinations(values), size);
}

// Sums over ranks are float32; only the op's result is rounded to float16.
TEST_P(OpPlacement, RanksComputeFloat16WhatOneComputes) {
  const OpCase& row = all_cases()[GetParam()];
  if (!row.placement || !row.half) GTEST_SKIP();
  const std::vector<Array> values = make_halves(row.inputs, 1);
  auto ways = combinations(values);
  // A sum makes the partial operands, and float16 is never partial.
  std::erase_if(ways, [](const auto& how) { return std::find(how.begin(), how.end(), Feed::kPartial) != how.end(); });
  expect_same_on_ranks(row, values, ways, 2);
}

INSTANTIATE_TEST_SUITE_P(Table, OpPlacement, ::testing::ValuesIn(numbers_of_cases()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace syncline::testing
