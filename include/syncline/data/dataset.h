// Labelled image data sets on disk.
#pragma once

#include <string>
#include <string_view>

#include "syncline/array.h"

#pragma GCC visibility push(default)
namespace syncline::io {

// The directory of Debian's package dataset-fashion-mnist.
inline constexpr std::string_view kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";
inline constexpr int kFashionMnistClasses = 10;

enum class Split { kTrain, kTest };

struct LabeledImages {
  Array images;  // uint8 (rows, 28, 28)
  Array labels;  // uint8 (rows,), 0 .. 9
};

// Reads the two IDX files of a split, gzipped ("train-images-idx3-ubyte.gz") or plain. Throws IoError that names the
// file and the problem: missing (and how to get it), another dtype or shape, different numbers of images and labels, a
// label out of range with its index. Thread-safe.
LabeledImages load_fashion_mnist(const std::string& directory, Split split);

}  // namespace syncline::io
#pragma GCC visibility pop
