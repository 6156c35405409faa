// Data-parallel execution over a communicator: which rows a rank computes, what every value's placement is, where the
// collectives stand. The only file of the runtime that knows the wire; without it everything else still links.
#pragma once

#include <cstdint>

#include "syncline/distributed/communicator.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/session.h"

namespace syncline {

struct DataParallelOptions {
  // Each rank hands over its own rows only; the global batch is then the ranks' rows one after the other. Otherwise
  // every rank hands over the same whole batch and computes on its share.
  bool local_feeds = false;
  // In bytes: all-reduces of a step are put together until they are as many. The first ones begin early.
  std::int64_t first_bucket = keras_json().first_bucket;
  std::int64_t later_buckets = keras_json().later_buckets;
  // In bytes: on one node, gradients that are as large are computed by rows, each rank its own of them from the whole
  // batch, where that moves less than their sum would.
  std::int64_t by_rows_from = keras_json().by_rows_from;
  // After so many steps the ranks compare digests of their variables; 0: never.
  std::uint64_t check_steps = keras_json().check_steps;
};

// The communicator must outlive the distributor.
OwnedDistributor make_data_parallel(comm::Communicator& communicator, DataParallelOptions options = {});

}  // namespace syncline
