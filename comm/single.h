// The communicator of a job of one process. It moves nothing; every ticket is finished at once.
#pragma once

#include <memory>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

std::unique_ptr<Communicator> make_single_communicator();

}  // namespace syncline::comm
