// The pictures of `syncline stat --png`.
#include "tools/histogram_picture.h"

#include <gd.h>
#include <gtest/gtest.h>

#include <memory>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/error.h"
#include "tests/tools/run.h"

namespace syncline::tools {
namespace {

using Image = std::unique_ptr<gdImage, void (*)(gdImagePtr)>;

Image decode(const void* data, std::size_t bytes) {
  Image image(gdImageCreateFromPngPtr(static_cast<int>(bytes), const_cast<void*>(data)), gdImageDestroy);
  if (image == nullptr) ADD_FAILURE() << "no PNG of " << bytes << " bytes";
  return image;
}
Image draw(const std::vector<HistogramPanel>& panels) {
  const std::vector<std::byte> png = draw_histograms(panels);
  return decode(png.data(), png.size());
}

// The number of blue pixels, the color of bars, in columns [from, to).
int blue_pixels(const Image& image, int from, int to) {
  int count = 0;
  for (int x = from; x < to; ++x)
    for (int y = 0; y < gdImageSY(image.get()); ++y) {
      const int pixel = gdImageGetPixel(image.get(), x, y);
      count += gdImageBlue(image.get(), pixel) > gdImageRed(image.get(), pixel) + 40;
    }
  return count;
}

TEST(HistogramPicture, BarsAreAsHighAsTheirCounts) {
  const Image image = draw({{.title = "w", .counts = {0, 100, 50, 1}}});
  const int width = gdImageSX(image.get()) - 28, left = 14;  // between the margins
  const auto part = [&](int i) { return blue_pixels(image, left + width * i / 4, left + width * (i + 1) / 4); };
  EXPECT_EQ(part(0), 0);
  EXPECT_GT(part(1), 5000);
  EXPECT_NEAR(part(2), part(1) / 2, part(1) / 20);
  EXPECT_GT(part(3), 0);
  EXPECT_LT(part(3), part(1) / 50);
}

TEST(HistogramPicture, PanelsStandThreeToARow) {
  const Image one = draw({{.counts = {1}}});
  const std::vector<HistogramPanel> seven(7, {.title = std::string(200, 'x'), .note = "\xc3\xa4", .counts = {}});
  const Image many = draw(seven);
  EXPECT_EQ(gdImageSX(many.get()), 3 * gdImageSX(one.get()));
  EXPECT_EQ(gdImageSY(many.get()), 3 * gdImageSY(one.get()));
}

TEST(HistogramPicture, MoreBarsThanPixels) {
  const Image image = draw({{.counts = std::vector<std::int64_t>(1000, 3)}});
  EXPECT_GT(blue_pixels(image, 0, gdImageSX(image.get())), 30000);
}

TEST(HistogramPicture, AsManyAsFit) {
  EXPECT_THROW(draw_histograms({}), ValueError);
  EXPECT_THROW(draw_histograms(std::vector<HistogramPanel>(kMostPanels + 1)), ValueError);
}

TEST(HistogramPicture, OfAFile) {
  const io::Scratch scratch;
  io::Checkpoint checkpoint;
  checkpoint.layers = {{"d", {{"d/kernel:0", Array::from<float>({2, 3}, {0, 1, 2, 4, 4, 4})}}}};
  checkpoint.optimizer = {{"iterations:0", Array::scalar(std::int64_t{7})}};
  io::save_checkpoint(scratch.path("a.h5"), checkpoint);
  const io::Outcome outcome = run("stat " + scratch.path("a.h5") + " --png " + scratch.path("a.png"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const std::string png = io::read_file(scratch.path("a.png"));
  const Image image = decode(png.data(), png.size());
  EXPECT_GT(blue_pixels(image, 0, gdImageSX(image.get()) / 2), 100);
  EXPECT_EQ(run("stat " + scratch.path("a.h5") + " --png " + scratch.path("no/a.png")).status, 1);
}

}  // namespace
}  // namespace syncline::tools
