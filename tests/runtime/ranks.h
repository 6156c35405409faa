// Ranks as threads, each with its own session, and the comparison of every data-parallel test: N ranks compute what one
// process computes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "syncline/array.h"
#include "syncline/backend/variable.h"
#include "syncline/distributed/communicator.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/expr.h"

namespace syncline::testing {

// For thresholds of DataParallelOptions.
inline constexpr std::int64_t kNever = std::int64_t{1} << 40;

// Runs `body` on `size` ranks, with the rank's session current. Rank r's session is made with the seed `seed` + r,
// which rank 0's must replace. `node_of_rank`: the number of each rank's node; empty: one node.
void on_ranks(int size, const std::function<void(comm::Communicator& communicator)>& body,
              DataParallelOptions options = {}, std::uint64_t seed = 5, const std::vector<int>& node_of_rank = {});
// Runs `body` in a session without a strategy.
void on_one_process(const std::function<void()>& body, std::uint64_t seed = 5);

// Calls `compute` in one process and on each number of ranks in `sizes`. On every rank each returned array must be near
// the one process's and have the bits of rank 0's.
void expect_same_on_ranks(const std::function<std::vector<Array>()>& compute, double tolerance = 1e-12,
                          const std::vector<int>& sizes = {1, 2, 3, 4}, DataParallelOptions options = {});

// The same for a graph over placeholders, which each rank builds and calls with `feeds`.
void expect_same_value(const std::vector<Array>& feeds,
                       const std::function<std::vector<Expr>(const std::vector<Expr>&)>& build,
                       double tolerance = 1e-12);
// With one feed and one output.
void expect_same_value(const Array& feed, const std::function<Expr(const Expr&)>& build, double tolerance = 1e-12);

// The plan of such a graph on rank 0 of `size` ranks.
std::string plan_on_ranks(int size, const std::vector<Array>& feeds,
                          const std::function<std::vector<Expr>(const std::vector<Expr>&)>& build);

}  // namespace syncline::testing
