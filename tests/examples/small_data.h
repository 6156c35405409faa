// A data set in the format of Fashion-MNIST, small enough for a test: ten patterns under noise, which a network can
// learn to tell apart.
#pragma once

#include <cstdint>
#include <string>

namespace syncline::examples {

// Writes the four plain IDX files into an existing directory. The same arguments give the same bytes.
void write_small_data(const std::string& directory, std::int64_t train_rows, std::int64_t test_rows);

}  // namespace syncline::examples
