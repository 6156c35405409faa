#include "tests/examples/small_data.h"

#include <initializer_list>
#include <random>

#include "tests/io/scratch.h"

namespace syncline::examples {
namespace {

constexpr int kPixels = 28 * 28;

std::string idx_header(std::initializer_list<std::int64_t> dimensions) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  for (const std::int64_t n : dimensions)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(n >> shift & 0xff));
  return bytes;
}

void write_split(const std::string& prefix, std::int64_t rows, std::uint32_t seed) {
  std::mt19937 noise(seed);
  std::string images = idx_header({rows, 28, 28}), labels = idx_header({rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto label = static_cast<int>(noise() % 10);
    labels.push_back(static_cast<char>(label));
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      const bool bright = pixel * (label + 3) % 29 < 9;
      images.push_back(static_cast<char>(noise() % 3 == 0 ? noise() % 256 : bright ? 180 : 0));
    }
  }
  io::write_file(prefix + "-images-idx3-ubyte", images);
  io::write_file(prefix + "-labels-idx1-ubyte", labels);
}

}  // namespace

void write_small_data(const std::string& directory, std::int64_t train_rows, std::int64_t test_rows) {
  write_split(directory + "/train", train_rows, 1);
  write_split(directory + "/t10k", test_rows, 2);
}

}  // namespace syncline::examples
