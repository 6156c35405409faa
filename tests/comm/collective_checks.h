// Checks of a communicator over any wire. Every rank of a job calls the same check. Failures are GoogleTest failures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// The text of the error that the call throws; "" if it throws none.
template <class Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// How many of so many neighbouring ranks the left half of their sum has: half of a power of two; else the largest power
// of two, unless the others are fewer than half of it; then half of it.
std::size_t left_half(std::size_t ranks);
// The sum of the ranks' terms in the order of every layout.
std::vector<float> sum_in_pairs(std::vector<std::vector<float>> terms);

// All dtypes that have reductions, all reductions and all counts, against results computed here.
void check_all_reduce(Communicator& comm, std::vector<std::int64_t> counts);
// Sums of float32 values that round: equal bits on every rank and in a second run.
void check_equal_bits(Communicator& comm);
// The same sums, small and large, have the bits of one expression, in every layout of the ranks.
void check_order_of_sums(Communicator& comm);
// Parts of different sizes, empty, and larger than kSmallBytes; in place and from other memory.
void check_all_gather(Communicator& comm);
// Several sizes, from each root.
void check_broadcast(Communicator& comm);
// The ranks of a node write and read one memory, which outlives the communicator.
void check_node_memory(std::unique_ptr<Communicator> comm);
// Parts of different sizes, empty, and larger than kSmallBytes, gathered in the memory of each node.
void check_gather_on_nodes(Communicator& comm);
// More unfinished collectives than the queue holds, with waits out of order.
void check_many_tickets(Communicator& comm);
// done() alone, without wait(), completes a collective.
void check_done(Communicator& comm);
// Rank 0's notes reach the other ranks in order, outside the collectives. Notes that no rank takes are harmless.
void check_notes(Communicator& comm);
// The last rank's program ends while the others continue; every error names it. The communicator is then unusable.
void check_end_of_program(Communicator& comm);

// A disagreement. `call` submits a collective that differs on the last rank; the error names `difference`.
struct Mismatch {
  std::string name;
  std::string difference;
  std::function<Ticket(Communicator&, std::vector<float>&)> call;
};
const std::vector<Mismatch>& mismatches();
// This rank gets the error, which names both ranks. Its data is unchanged, and later calls throw too.
void check_mismatch(Communicator& comm, const Mismatch& mismatch);

}  // namespace syncline::comm
