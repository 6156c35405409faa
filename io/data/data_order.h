// The order in which an epoch visits the rows of a data set. It is a pure function, so all ranks, machines and resumed
// runs agree on it without communication.
#pragma once

#include <cstdint>
#include <vector>

namespace syncline::io {

// A permutation of 0 .. rows-1 that depends only on the arguments; uniform within the limits of a 64-bit seed. The
// sequence is part of the checkpoint format, because a resumed run must read the same rows. Throws ValueError if epoch
// or rows is negative. Thread-safe.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t rows);

// The same for a part of an epoch; each part has its own order. Throws ValueError if part or rows is negative.
std::vector<std::int64_t> part_order(std::uint64_t seed, std::int64_t epoch, std::int64_t part, std::int64_t rows);

}  // namespace syncline::io
