#include "syncline/data/dataset.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

std::string images(int rows, int side = 28) {
  const auto byte = [](int value) { return static_cast<char>(value); };
  std::string text{0, 0, 8, 3, 0, 0, 0, byte(rows), 0, 0, 0, byte(side), 0, 0, 0, byte(side)};
  return text + std::string(static_cast<std::size_t>(rows * side * side), '\7');
}

std::string labels(const std::string& values) {
  return std::string{0, 0, 8, 1, 0, 0, 0, static_cast<char>(values.size())} + values;
}

class FashionMnist : public testing::Test {
 protected:
  void write(const std::string& image_bytes, const std::string& label_bytes) {
    write_file(scratch_.path("t10k-images-idx3-ubyte"), image_bytes);
    write_file(scratch_.path("t10k-labels-idx1-ubyte"), label_bytes);
  }
  LabeledImages load() { return load_fashion_mnist(scratch_.directory(), Split::kTest); }
  std::string refusal() {
    std::string message = message_of([&] { load(); });
    EXPECT_ONE_LINE(message);
    return message;
  }

  Scratch scratch_;
};

TEST_F(FashionMnist, ReadsASplit) {
  write(images(2), labels("\3\11"));
  const LabeledImages data = load();
  EXPECT_EQ(data.images.shape(), (Shape{2, 28, 28}));
  EXPECT_EQ(data.labels.data<std::uint8_t>()[1], 9);
}

TEST_F(FashionMnist, MissingFilesSayWhereToGetThem) {
  const std::string message = refusal();
  EXPECT_CONTAINS(message, scratch_.path("t10k-images-idx3-ubyte.gz"));
  EXPECT_CONTAINS(message, "Debian package dataset-fashion-mnist");
  write_file(scratch_.path("t10k-images-idx3-ubyte"), images(1));
  EXPECT_CONTAINS(refusal(), "t10k-labels-idx1-ubyte");
}

TEST_F(FashionMnist, LabelOutOfRange) {
  write(images(3), labels("\1\2\12"));
  EXPECT_CONTAINS(refusal(), "t10k-labels-idx1-ubyte': label 2 is 10, not 0 to 9");
}

TEST_F(FashionMnist, CountsThatDiffer) {
  write(images(3), labels("\1\2"));
  EXPECT_CONTAINS(refusal(), "holds 2 labels for 3 images");
}

TEST_F(FashionMnist, ImagesOfAnotherSize) {
  write(images(1, 20), labels("\1"));
  EXPECT_CONTAINS(refusal(), "holds uint8 of shape (1, 20, 20), not uint8 of shape (?, 28, 28)");
}

TEST_F(FashionMnist, FilesMixedUp) {
  write(labels("\1"), images(1));
  EXPECT_CONTAINS(refusal(), "images-idx3-ubyte': holds uint8 of shape (1,)");
}

TEST(FashionMnistPackage, IsReadWhole) {
  const std::string directory(kFashionMnistDirectory);
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  EXPECT_EQ(load_fashion_mnist(directory, Split::kTrain).images.shape(), (Shape{60000, 28, 28}));
  const LabeledImages test = load_fashion_mnist(directory, Split::kTest);
  EXPECT_EQ(test.labels.shape(), (Shape{10000}));
  EXPECT_EQ(test.labels.data<std::uint8_t>()[0], 9);
}

}  // namespace
}  // namespace syncline::io
