// Reads a table of algorithms for collectives between nodes, which benchmarks/allreduce can write.
#pragma once

#include <string>

#include "syncline/distributed/settings.h"

namespace syncline {

// The file's rows, and behind them the built-in ones. Throws IoError if it cannot be read, and ValueError that names
// the file and the key.
comm::AlgorithmTable read_algorithm_file(const std::string& path);

}  // namespace syncline
