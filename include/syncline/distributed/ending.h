// Ending a job of several ranks after an error: one message, promptly, and an exit code that tells the kind of error.
#pragma once

#include <chrono>
#include <exception>
#include <string_view>

#include "syncline/distributed/communicator.h"
#include "syncline/error.h"

#pragma GCC visibility push(default)
namespace syncline::comm {

// Thrown by a rank that waits for a rank that has died or left the job.
struct RankGone : StallError {
  using StallError::StallError;
};

// The delay before a rank reports its error and ends the job. Often all ranks fail for a common cause; then the lowest
// failed rank reports and ends the job before the others' delays expire. Within a second on one node, three on several.
std::chrono::duration<double> report_delay(const Communicator& communicator);

// For a main that has caught `error`. After report_delay, prints one line on standard error, "program: rank 1: what",
// and ends all ranks with exit_code_of(error). For RankGone it then waits half a second first, so that the launcher,
// which knows the signal that ended the rank, or the rank itself can end the job. Flushes the standard streams.
[[noreturn]] void end_job(Communicator& communicator, std::string_view program, const std::exception& error);

}  // namespace syncline::comm
#pragma GCC visibility pop
