#include "syncline/data/dataset.h"

#include <unistd.h>

#include "io/data/idx.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::int64_t kSide = 28;

std::string find_file(const std::string& directory, const std::string& name) {
  const std::string plain = join_text(directory, directory.ends_with('/') ? "" : "/", name), gzipped = plain + ".gz";
  if (::access(gzipped.c_str(), F_OK) == 0) return gzipped;
  if (::access(plain.c_str(), F_OK) == 0) return plain;
  fail<IoError>("data set: neither '", gzipped, "' nor '", name, "' exists; install the Debian package ",
                "dataset-fashion-mnist, which puts it into ", kFashionMnistDirectory,
                ", or give the directory that contains it");
}

void require_shape(const std::string& path, const Array& array, const Shape& wanted) {
  if (array.dtype() != DType::kUint8 || !accepts(wanted, array.shape()))
    fail<IoError>("data file '", path, "': holds ", array.dtype(), " of shape ", array.shape(), ", not uint8 of shape ",
                  wanted, "; it is not a file of Fashion-MNIST");
}

void require_range(const std::string& path, const Array& labels) {
  const std::span<const std::uint8_t> values = labels.values<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] >= kFashionMnistClasses)
      fail<IoError>("data file '", path, "': label ", i, " is ", int{values[i]}, ", not 0 to ",
                    kFashionMnistClasses - 1, "; the file is damaged: download it again");
}

}  // namespace

LabeledImages load_fashion_mnist(const std::string& directory, Split split) {
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string images_path = find_file(directory, prefix + "-images-idx3-ubyte");
  const std::string labels_path = find_file(directory, prefix + "-labels-idx1-ubyte");
  LabeledImages data{read_idx(images_path), read_idx(labels_path)};
  require_shape(images_path, data.images, {kUnknown, kSide, kSide});
  require_shape(labels_path, data.labels, {kUnknown});
  if (data.images.shape()[0] != data.labels.shape()[0])
    fail<IoError>("data file '", labels_path, "': holds ", data.labels.shape()[0], " labels for ",
                  data.images.shape()[0], " images in '", images_path, "'; they belong to different data sets");
  require_range(labels_path, data.labels);
  return data;
}

}  // namespace syncline::io
