// The op cases with their rows on ranks (threads). Cut at random, a result that needs no sum over ranks has the bits of
// one process, so a row's bits depend neither on the other rows nor on its position. Divided into the parts of a batch,
// every result has the same bits on any number of ranks. One, two and four threads give the same bits too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <string_view>
#include <unordered_set>

#include "comm/local/local_communicator.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/gemm.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "tests/ops/gradient_check.h"
#include "tests/ops/op_case.h"

namespace syncline::testing {
namespace {

// Operands of a case, and which of them have their rows cut.
struct Cut {
  std::vector<Array> values;
  std::vector<bool> split;

  std::vector<Array> feeds() const {
    std::vector<Array> feeds;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (split[i]) feeds.push_back(values[i]);
    return feeds;
  }
  std::int64_t rows() const { return feeds().front().shape()[0]; }
};

// The case's value and gradients, with the rows of the operands in `split` fed and the others as variables.
struct Graph {
  std::vector<Expr> fed, roots;

  Graph(const OpCase& row, const Cut& cut) {
    const auto& [values, split] = cut;
    std::vector<Expr> x, wrt;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Shape open = values[i].shape();
      if (split[i]) open[0] = kUnknown;
      x.push_back(split[i] ? placeholder({.shape = open, .dtype = values[i].dtype()}) : Expr(variable(values[i])));
      if (split[i]) fed.push_back(x.back());
      if (is_floating(values[i].dtype())) wrt.push_back(x.back());
    }
    roots.push_back(row.build(x));
    if (row.gradient && is_floating(roots[0].dtype()))
      for (const Expr& dx : gradients(weighted_sum(roots[0], 7), wrt))
        if (dx) roots.push_back(dx);
  }
};

// Operands with as many rows as the first that has rows: all of them, and each alone.
std::vector<std::vector<bool>> splits_of(const std::vector<Array>& values) {
  std::int64_t rows = -1;
  std::vector<bool> all;
  for (const Array& value : values) {
    if (rows < 0 && value.shape().ndim() > 0) rows = value.shape()[0];
    all.push_back(value.shape().ndim() > 0 && value.shape()[0] == rows && rows > 1);
  }
  if (std::find(all.begin(), all.end(), true) == all.end()) return {};
  std::vector<std::vector<bool>> found{all};
  if (std::count(all.begin(), all.end(), true) == 1) return found;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]) {
      found.emplace_back(all.size(), false);
      found.back()[i] = true;
    }
  return found;
}

// Whether the case accepts these operands with open rows: some have an axis of channels or positions in front.
bool is_accepted(const OpCase& row, const Cut& cut) {
  try {
    Session session(3);
    SessionScope scope(session);
    const Graph graph(row, cut);
    Function(graph.fed, graph.roots)(cut.feeds());
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The inputs with 40 times as many rows, past the thresholds of kernels; none if they have given values.
std::vector<InputSpec> with_many_rows(const OpCase& row) {
  std::vector<InputSpec> tall = row.inputs;
  const auto splits = splits_of(make_inputs(row.inputs, 1));
  for (std::size_t i = 0; i < tall.size() && !splits.empty(); ++i) {
    if (!splits.front()[i]) continue;
    if (!tall[i].values.empty()) return {};
    tall[i].shape[0] *= 40;
  }
  return splits.empty() ? std::vector<InputSpec>{} : tall;
}

// All operands of a case that can be cut.
std::vector<Cut> cuts_of(const OpCase& row) {
  std::vector<Cut> cuts;
  for (const std::vector<InputSpec>& inputs : {row.inputs, row.large, with_many_rows(row)}) {
    if (inputs.empty()) continue;
    const std::vector<Array> values = make_inputs(inputs, 1);
    for (const std::vector<bool>& split : splits_of(values))
      if (const Cut cut{values, split}; is_accepted(row, cut)) cuts.push_back(cut);
  }
  return cuts;
}

// True if the ranks' order of summation decides bits.
bool is_left_out(const std::string& plan) {
  const auto has = [&](const char* text) { return plan.find(text) != std::string::npos; };
  return has("sum over ranks") || has("sums over ranks");
}

// Sets the number of threads again at its end.
struct ThreadCounts {
  ~ThreadCounts() { set_thread_count(before); }
  int before = thread_count();
};

std::string difference_on_ranks(const OpCase& row, const Cut& cut, const std::vector<std::int64_t>& cuts, int threads) {
  const std::vector<Array> feeds = cut.feeds();
  std::vector<Array> wanted;
  set_thread_count(1);
  {
    Session session(3);
    SessionScope scope(session);
    const Graph graph(row, cut);
    for (const Expr& root : graph.roots) wanted.push_back(Function(graph.fed, {root})(feeds)[0].copy());
  }
  std::mutex mutex;
  std::string problems;
  set_thread_count(threads);
  comm::spawn_ranks(3, [&](comm::Communicator& communicator) {
    Session session(3);
    session.distribute(make_data_parallel(communicator, {.local_feeds = true}));
    SessionScope scope(session);
    const auto r = static_cast<std::size_t>(communicator.rank());
    std::vector<Array> own;
    for (const Array& feed : feeds) own.push_back(feed.rows(cuts[r], cuts[r + 1]).copy());
    const Graph graph(row, cut);
    for (std::size_t i = 0; i < graph.roots.size(); ++i) {
      Function f(graph.fed, {graph.roots[i]});
      const Array got = f(own)[0].copy();
      if (is_left_out(f.describe(own)) || communicator.rank() != 0) continue;
      if (got.shape() == wanted[i].shape() && std::memcmp(got.raw(), wanted[i].raw(), got.bytes()) == 0) continue;
      const std::vector<double> x = tensor_of(got).values, y = tensor_of(wanted[i]).values;
      const auto at = std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin();
      std::lock_guard lock(mutex);
      problems += join_text(i == 0 ? "value" : "gradient", ' ', i, ' ', got.shape(), ", rows cut at ", cuts[1], " and ",
                            cuts[2], ": element ", at, " has other bits: ", x[at], ", wanted ", y[at], "\n");
    }
  });
  return problems;
}

// The value and gradients on rank 0 of some ranks, with eight parts of the batch.
std::vector<Array> computed_by_parts(const OpCase& row, const Cut& cut, int ranks) {
  const std::vector<Array> feeds = cut.feeds();
  std::vector<Array> results;
  comm::spawn_ranks(ranks, [&](comm::Communicator& communicator) {
    Session session(3);
    session.distribute(make_data_parallel(communicator, {.by_rows_from = 64, .parts = 8}));
    SessionScope scope(session);
    const Graph graph(row, cut);
    std::vector<Array> own = Function(graph.fed, graph.roots)(feeds);
    if (communicator.rank() != 0) return;
    for (const Array& result : own) results.push_back(result.copy());
  });
  return results;
}

class OpRowCuts : public ::testing::TestWithParam<std::size_t> {};

TEST_P(OpRowCuts, ARowHasTheSameBitsEverywhere) {
  const kernels::KeptRowBits no_blas;
  const ThreadCounts threads;
  const OpCase& row = all_cases()[GetParam()];
  if (!row.placement) GTEST_SKIP();
  std::mt19937_64 random(GetParam());
  const auto somewhere = [&](std::int64_t rows) { return static_cast<std::int64_t>(random() % (rows + 1)); };
  for (const Cut& cut : cuts_of(row)) {
    const std::int64_t rows = cut.rows();
    std::vector<std::int64_t> anywhere{0, somewhere(rows), somewhere(rows), rows};
    std::sort(anywhere.begin(), anywhere.end());
    const std::int64_t few = std::min<std::int64_t>(rows, 1 + somewhere(6));
    EXPECT_EQ(difference_on_ranks(row, cut, anywhere, 2), "");
    EXPECT_EQ(difference_on_ranks(row, cut, {0, few, std::min(few + 1, rows), rows}, 4), "");
  }
}

TEST_P(OpRowCuts, PartsHaveTheSameBitsOnAnyNumberOfRanks) {
  const ThreadCounts threads;
  const OpCase& row = all_cases()[GetParam()];
  if (!row.placement) GTEST_SKIP();
  for (const Cut& cut : cuts_of(row)) {
    set_thread_count(1);
    const std::vector<Array> wanted = computed_by_parts(row, cut, 1);
    for (const auto& [ranks, threads_a_rank] : {std::pair{2, 4}, {3, 2}, {8, 1}}) {
      set_thread_count(threads_a_rank);
      const std::vector<Array> got = computed_by_parts(row, cut, ranks);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(got[i].shape() == wanted[i].shape() &&
                    std::memcmp(got[i].raw(), wanted[i].raw(), got[i].bytes()) == 0)
            << "result " << i << ' ' << got[i].shape() << " on " << ranks << " ranks";
    }
  }
}

// Of operands with open rows, plans make the first two, when the sizes are known. The last only throws.
const std::set<std::string_view> kNotCut{"strided_pad", "true_at", "ctc_second_derivative"};

TEST(OpTable, EveryOpIsCut) {
  std::set<const OpDef*> cut;
  Session session(3);
  SessionScope scope(session);
  for (const OpCase& row : all_cases()) {
    if (!row.placement) continue;
    for (const Cut& operands : cuts_of(row))
      for (const auto& node : nodes_under(Graph(row, operands).roots)) cut.insert(node->op);
  }
  for (const OpDef* op : registered_ops())
    EXPECT_TRUE(op->leaf || kNotCut.contains(op->name) || cut.contains(op))
        << "no case of the op " << op->name << " accepts operands whose rows are cut";
}

INSTANTIATE_TEST_SUITE_P(Table, OpRowCuts, ::testing::ValuesIn(numbers_of_cases()),
                         [](const auto& info) { return all_cases()[info.param].name; });

}  // namespace
}  // namespace syncline::testing
