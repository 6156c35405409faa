#include "tests/runtime/ranks.h"

#include <gtest/gtest.h>

#include <string>

#include "comm/local/local_communicator.h"
#include "syncline/backend/function.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

using Build = std::function<std::vector<Expr>(const std::vector<Expr>&)>;

// The first dimension is unknown until it is fed.
std::vector<Expr> placeholders_for(const std::vector<Array>& feeds) {
  std::vector<Expr> result;
  for (const Array& feed : feeds) {
    Shape shape = feed.shape();
    if (shape.ndim() > 0) shape[0] = kUnknown;
    result.push_back(placeholder({.shape = shape, .dtype = feed.dtype()}));
  }
  return result;
}

std::vector<Array> compute_graph(const std::vector<Array>& feeds, const Build& build) {
  const std::vector<Expr> x = placeholders_for(feeds);
  return Function(x, build(x))(feeds);
}

}  // namespace

void on_ranks(int size, const std::function<void(comm::Communicator& communicator)>& body, DataParallelOptions options,
              std::uint64_t seed, const std::vector<int>& node_of_rank) {
  comm::spawn_ranks(size,
                    [&](comm::Communicator& communicator) {
                      Session session(seed + static_cast<std::uint64_t>(communicator.rank()));
                      SessionScope scope(session);
                      session.distribute(make_data_parallel(communicator, options));
                      body(communicator);
                    },
                    {.node_of_rank = node_of_rank});
}

void on_one_process(const std::function<void()>& body, std::uint64_t seed) {
  Session session(seed);
  SessionScope scope(session);
  body();
}

void expect_same_on_ranks(const std::function<std::vector<Array>()>& compute, double tolerance,
                          const std::vector<int>& sizes, DataParallelOptions options) {
  std::vector<Array> wanted;
  on_one_process([&] { wanted = compute(); });
  for (const int size : sizes) {
    std::vector<std::vector<Array>> got(static_cast<std::size_t>(size));
    on_ranks(
        size, [&](comm::Communicator& communicator) { got[static_cast<std::size_t>(communicator.rank())] = compute(); },
        options);
    for (int r = 0; r < size; ++r) {
      const auto& own = got[static_cast<std::size_t>(r)];
      ASSERT_EQ(own.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string what = join_text("rank ", r, " of ", size, ", output ", i);
        expect_near(own[i], wanted[i], tolerance, what);
        EXPECT_TRUE(same_bits(own[i], got[0][i])) << what << " differs from rank 0's";
      }
    }
  }
}

void expect_same_value(const std::vector<Array>& feeds, const Build& build, double tolerance) {
  expect_same_on_ranks([&] { return compute_graph(feeds, build); }, tolerance);
}

void expect_same_value(const Array& feed, const std::function<Expr(const Expr&)>& build, double tolerance) {
  expect_same_value(
      std::vector<Array>{feed}, [&](const std::vector<Expr>& x) { return std::vector<Expr>{build(x[0])}; }, tolerance);
}

std::string plan_on_ranks(int size, const std::vector<Array>& feeds, const Build& build) {
  std::string plan;
  on_ranks(size, [&](comm::Communicator& communicator) {
    const std::vector<Expr> x = placeholders_for(feeds);
    const std::string own = Function(x, build(x)).describe(feeds);
    if (communicator.rank() == 0) plan = own;
  });
  return plan;
}

}  // namespace syncline::testing
