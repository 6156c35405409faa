// The communicator that fits how this process was started; what a main calls.
#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace syncline::comm {

// Started as one of several ranks: over MPI. Otherwise a communicator of size 1, without touching MPI. Throws CommError
// if the launcher and MPI do not fit together, before any message. A wait beyond the limit throws CommError.
std::unique_ptr<Communicator> make_communicator(std::chrono::duration<double> wait_limit = std::chrono::seconds(60));

}  // namespace syncline::comm
