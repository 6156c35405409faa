// What rank 0 knows and the others shall know: it alone reads and writes files, because ranks may not share a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "syncline/distributed/communicator.h"

namespace syncline::training {

// Rank 0's text, on every rank. All must call it; `purpose` is for errors. Without a wire, or on one rank: the text.
// Throws CommError from the wire.
std::string as_first_rank_says(comm::Communicator* wire, std::string_view purpose, std::string text);

// Rank 0's bytes, likewise.
void copy_from_first_rank(comm::Communicator* wire, std::string_view purpose, void* data, std::size_t bytes);

// The greatest of all ranks' numbers, likewise.
std::int32_t greatest_of_all(comm::Communicator* wire, std::string_view purpose, std::int32_t number);

inline bool is_first(const comm::Communicator* wire) { return wire == nullptr || wire->rank() == 0; }

}  // namespace syncline::training
