// Makes the communicator that fits how this process was started; called by main.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "syncline/distributed/communicator.h"
#include "syncline/distributed/settings.h"

#pragma GCC visibility push(default)
namespace syncline::comm {

// For one of several ranks: a communicator over memory, MPI and NCCL, depending on where the ranks are. Otherwise a
// communicator of size 1, without touching MPI. Throws CommError, before any message, if the launcher and MPI disagree.
// `options`: comm_options() of syncline/distributed/keras_json.h reads keras.json and the environment.
std::unique_ptr<Communicator> make_communicator(const CommOptions& options);

// For main: makes the communicator and runs `job` on it; then waits until all ranks have ended theirs, and throws
// DisagreementError if one goes on with a collective. `options`: a function, usually comm_options of
// syncline/distributed/keras_json.h. `job` must wait for its tickets. If it throws, prints "program: rank 1: what" and
// ends all ranks (end_job); if there is no communicator yet, prints the error. Returns the exit code of the process.
int run_job(std::string_view program, const std::function<CommOptions()>& options,
            const std::function<void(Communicator&)>& job);

}  // namespace syncline::comm
#pragma GCC visibility pop
