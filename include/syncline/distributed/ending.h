// How a program of several ranks ends because of an error: told once, soon, with an exit code that says which kind.
#pragma once

#include <chrono>
#include <exception>
#include <string_view>

#include "syncline/distributed/communicator.h"
#include "syncline/error.h"

namespace syncline::comm {

// What a rank throws that waits for one which has died or left the job.
struct RankGone : StallError {
  using StallError::StallError;
};

// How long a rank waits before it says why it ends the job. Often all ranks fail of one cause; the lowest of them then
// speaks and ends the job before the next one's turn. Every rank's turn comes within a second on one node, within three
// on several.
std::chrono::duration<double> turn_to_speak(const Communicator& wire);

// For a main that has caught `error`: in this rank's turn one line on standard error, "program: rank 1: what", and the
// end of all ranks with exit_code_of(error). If a rank is gone, that comes half a second later: the launcher, which
// knows by what signal it died, or the rank itself, ends the job first. Flushes the standard streams.
[[noreturn]] void end_job(Communicator& wire, std::string_view program, const std::exception& error);

}  // namespace syncline::comm
