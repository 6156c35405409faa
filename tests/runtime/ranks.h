// Ranks as threads, each with a session of its own, and the comparison that every data-parallel test makes: what N
// ranks compute is what one process computes.
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

// Runs `body` on `size` ranks, with the rank's session current. Rank r's seed is `seed` + r: rank 0's must win.
// `node_of_rank`: the number of each rank's node; empty: all are on one.
void on_ranks(int size, const std::function<void(comm::Communicator& wire)>& body, DataParallelOptions options = {},
              std::uint64_t seed = 5, const std::vector<int>& node_of_rank = {});
// Runs `body` in a session without a strategy.
void on_one_process(const std::function<void()>& body, std::uint64_t seed = 5);

// Calls `compute` in one process and on 1 to 4 ranks, and compares every array that it returns, on every rank, with the
// one process's; the ranks' bits are compared with one another.
void expect_same_on_ranks(const std::function<std::vector<Array>()>& compute, double tolerance = 1e-12,
                          const std::vector<int>& sizes = {1, 2, 3, 4}, DataParallelOptions options = {});

// A graph over placeholders, built anew on each rank, and what it is fed with.
void expect_same_value(const std::vector<Array>& feeds,
                       const std::function<std::vector<Expr>(const std::vector<Expr>&)>& build,
                       double tolerance = 1e-12);
// One operand.
void expect_same_value(const Array& feed, const std::function<Expr(const Expr&)>& build, double tolerance = 1e-12);

// The plan of such a graph on rank 0 of `size` ranks.
std::string plan_on_ranks(int size, const std::vector<Array>& feeds,
                          const std::function<std::vector<Expr>(const std::vector<Expr>&)>& build);

}  // namespace syncline::testing
