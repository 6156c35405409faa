// Checks that hold for a communicator over any wire. Every rank of a job calls the same check; failures are
// GoogleTest's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// All dtypes and reductions at each count, against the sum worked out here.
void check_all_reduce(Communicator& comm, std::vector<std::int64_t> counts);
// Floating sums of values that round: the same bits on every rank, and again in a second run.
void check_equal_bits(Communicator& comm);
// Parts of different size, of no bytes, beyond kSmallBytes; from elsewhere and in place.
void check_all_gather(Communicator& comm);
// From each root.
void check_broadcast(Communicator& comm);
// More collectives under way than the queue holds, waited for out of order.
void check_many_tickets(Communicator& comm);
// done() alone, without wait(), brings a collective to its end.
void check_done(Communicator& comm);
// Rank 0's notes reach the others in order, without anybody waiting, and those that nobody takes do no harm.
void check_notes(Communicator& comm);
// A rank whose program ends is named to the one that goes on. The communicator is of no use afterwards.
void check_end_of_program(Communicator& comm);

// One way in which ranks can disagree. `call` is what rank r submits; the error names `difference`.
struct Mismatch {
  std::string name;
  std::string difference;
  std::function<Ticket(Communicator&, std::vector<float>&)> call;
};
const std::vector<Mismatch>& mismatches();
// The error comes on this rank, names both ranks, leaves the data alone, and stays.
void check_mismatch(Communicator& comm, const Mismatch& mismatch);

}  // namespace syncline::comm
