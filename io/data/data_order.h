// The order in which an epoch visits the rows of a data set: a pure function, so that every rank, every machine and
// every resumed run agrees on it without a word being sent.
#pragma once

#include <cstdint>
#include <vector>

namespace syncline::io {

// A permutation of 0 .. rows-1 that depends on nothing but its arguments. Each permutation is equally likely, as far as
// 64 bits of seed can tell. The sequence is part of the checkpoint format: a resumed run must meet the same rows.
// Throws ValueError if epoch or rows is negative. Thread-safe.
std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t rows);

// The same for one of an epoch's parts, which have orders of their own. Throws ValueError if part or rows is negative.
std::vector<std::int64_t> part_order(std::uint64_t seed, std::int64_t epoch, std::int64_t part, std::int64_t rows);

}  // namespace syncline::io
