// Broadcasts from rank 0. Only rank 0 reads and writes files, because ranks may not share a disk. All are collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "syncline/distributed/communicator.h"

#pragma GCC visibility push(default)
namespace syncline::training {

// Returns rank 0's text on every rank; `purpose` appears in errors. Without a communicator, or on one rank, returns
// `text`. Throws CommError from the communicator.
std::string as_first_rank_says(comm::Communicator* communicator, std::string_view purpose, std::string text);

// Replaces `data` with rank 0's bytes; otherwise as as_first_rank_says.
void copy_from_first_rank(comm::Communicator* communicator, std::string_view purpose, void* data, std::size_t bytes);

// Returns the maximum over all ranks; otherwise as as_first_rank_says.
std::int32_t greatest_of_all(comm::Communicator* communicator, std::string_view purpose, std::int32_t number);

inline bool is_first(const comm::Communicator* communicator) {
  return communicator == nullptr || communicator->rank() == 0;
}

}  // namespace syncline::training
#pragma GCC visibility pop
