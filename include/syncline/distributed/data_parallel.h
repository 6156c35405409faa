// Data-parallel execution over a communicator: determines the rows of each rank, the placement of every value, and
// where collectives run. The only part of the runtime that depends on the communicator; the rest links without it.
#pragma once

#include <cstdint>
#include <vector>

#include "syncline/distributed/communicator.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/session.h"

#pragma GCC visibility push(default)
namespace syncline {

struct DataParallelOptions {
  // True: each rank feeds its own rows, and the global batch is the ranks' rows in rank order. False: every rank feeds
  // the same global batch and computes on its share.
  bool local_feeds = false;
  // Bucket sizes in bytes: a step's all-reduces are merged up to this size. A small first bucket starts early. A
  // gradient of the first bucket's size or more is scattered if each rank needs its own rows only.
  std::int64_t first_bucket = keras_json().first_bucket;
  std::int64_t later_buckets = keras_json().later_buckets;
  // In bytes. Each rank computes some rows of a gradient of this size or more, from the whole batch, if that moves
  // fewer bytes than an all-reduce.
  std::int64_t by_rows_from = keras_json().by_rows_from;
  // In bytes. The ranks of a node share a variable of this size or more, if its update is elementwise: the node has one
  // copy, and each rank updates some of its rows.
  std::int64_t share_from = keras_json().share_from;
  // kSplit: on several nodes, variables of share_from bytes and more that steps use by rows only, an optimizer's slots,
  // are not copied to all nodes. get_value of such a variable is then a collective step. With kReplicated no variable
  // is shared.
  OptimizerState optimizer_state = keras_json().optimizer_state;
  // Interval in steps at which the ranks compare digests of their variables; 0: never.
  std::uint64_t check_steps = keras_json().check_steps;
  // 0, or a power of two: the parts into which the rows of a batch are divided. Sums over the batch add the sums of the
  // parts along one binary tree, so that variables, outputs and losses have equal bits on any number of ranks up to
  // this one, of one rank too. A rank has one, two, four, ... parts.
  int parts = keras_json().parts;
};

// The first part of each rank, then the number of parts: the ranks share the parts along the tree over the ranks
// (comm/rounds/sum_tree.h), so a sum over the ranks adds the parts along one tree for any number of ranks. Without
// parts (0), each rank has one share. Throws ValueError unless `parts` is 0 or a power of two, at most
// KerasJson::kMostParts and at least the number of ranks.
std::vector<int> first_parts(int ranks, std::int64_t parts);

// The communicator must outlive the strategy.
OwnedStrategy make_data_parallel(comm::Communicator& communicator, DataParallelOptions options = {});

}  // namespace syncline
#pragma GCC visibility pop
