// Writes a table of algorithms for collectives between nodes from measurement.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "syncline/distributed/communicator.h"
#include "syncline/distributed/make_communicator.h"

namespace syncline::benchmarks {

// Times both algorithms on this job's nodes, for buffers of these sizes, and prints their times. Rank 0 writes the
// table to `path`, in the form of runtime/session/algorithm_file.h; it keeps the file's rows of other numbers of nodes.
// Collective. Throws ValueError for a single node, and IoError if the file cannot be written.
void write_algorithm_table(comm::Communicator& comm, const comm::CommOptions& options,
                           std::span<const std::int64_t> sizes, int repetitions, const std::string& path);

}  // namespace syncline::benchmarks
