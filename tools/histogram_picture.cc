#include "tools/histogram_picture.h"

#include <fmt/format.h>
#include <gd.h>
#include <gdfonts.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "syncline/error.h"

namespace syncline::tools {
namespace {

// Pixels.
constexpr int kPanelsARow = 3, kPanelWidth = 330, kPanelHeight = 200;
constexpr int kMargin = 14, kBarsTop = 46, kBarsBottom = 170;
constexpr int kBarsHeight = kBarsBottom - kBarsTop, kBarsWidth = kPanelWidth - 2 * kMargin;

class Picture {
 public:
  Picture(int width, int height)
      : image_(gdImageCreateTrueColor(width, height), gdImageDestroy), font_(gdFontGetSmall()) {
    if (image_ == nullptr) throw std::bad_alloc();
    gdImageFilledRectangle(image_.get(), 0, 0, width, height, kWhite);
  }

  void draw(const HistogramPanel& panel, int left, int top) const {
    left += kMargin;
    const int right = left + kBarsWidth - 1, bottom = top + kBarsBottom;
    write(panel.title, left, top + 8, kBarsWidth, kBlack);
    write(panel.note, left, top + 24, kBarsWidth, panel.warns ? kRed : kGrey);
    gdImageLine(image_.get(), left, bottom, right, bottom, kGrey);
    if (panel.counts.empty()) return;
    const std::int64_t most = *std::max_element(panel.counts.begin(), panel.counts.end());
    const auto bins = static_cast<std::int64_t>(panel.counts.size());
    for (std::int64_t i = 0; i < bins; ++i) {
      const std::int64_t count = panel.counts[static_cast<std::size_t>(i)];
      if (count == 0) continue;
      const int from = left + static_cast<int>(i * kBarsWidth / bins);
      const int to = left + static_cast<int>((i + 1) * kBarsWidth / bins) - (bins <= kBarsWidth / 4 ? 2 : 1);
      // Keeps a small count visible.
      const int height =
          std::max(1, static_cast<int>(static_cast<double>(count) / static_cast<double>(most) * kBarsHeight));
      gdImageFilledRectangle(image_.get(), from, bottom - height, std::max(from, to), bottom - 1, kBlue);
    }
    write(panel.min, left, bottom + 4, kBarsWidth / 2, kGrey);
    write(panel.max, right + 1 - width_of(panel.max), bottom + 4, kBarsWidth / 2, kGrey);
    const std::string highest = fmt::format("{}", most);
    write(highest, right + 1 - width_of(highest), top + kBarsTop - 12, kBarsWidth, kGrey);
  }

  std::vector<std::byte> png() const {
    int bytes = 0;
    const std::unique_ptr<void, void (*)(void*)> data(gdImagePngPtr(image_.get(), &bytes), gdFree);
    if (data == nullptr) throw std::bad_alloc();
    std::vector<std::byte> result(static_cast<std::size_t>(bytes));
    std::memcpy(result.data(), data.get(), result.size());
    return result;
  }

 private:
  static constexpr int kWhite = 0xffffff, kBlack = 0x202020, kGrey = 0x707070, kRed = 0xc03020, kBlue = 0x3b6ea5;

  int width_of(const std::string& text) const { return static_cast<int>(text.size()) * font_->w; }

  // The font has only ASCII.
  void write(std::string text, int x, int y, int width, int color) const {
    text = text.substr(0, static_cast<std::size_t>(width / font_->w));
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    gdImageString(image_.get(), font_, x, y, reinterpret_cast<unsigned char*>(text.data()), color);
  }

  std::unique_ptr<gdImage, void (*)(gdImagePtr)> image_;
  gdFontPtr font_;
};

}  // namespace

std::vector<std::byte> draw_histograms(std::span<const HistogramPanel> panels) {
  if (panels.empty()) fail<ValueError>("there are no arrays to draw");
  if (panels.size() > kMostPanels)
    fail<ValueError>("there are ", panels.size(), " arrays; a picture shows at most ", kMostPanels,
                     ": give the names of the arrays to draw");
  const int columns = std::min(kPanelsARow, static_cast<int>(panels.size()));
  const int rows = (static_cast<int>(panels.size()) + columns - 1) / columns;
  const Picture picture(columns * kPanelWidth, rows * kPanelHeight);
  for (int i = 0; i < static_cast<int>(panels.size()); ++i)
    picture.draw(panels[static_cast<std::size_t>(i)], i % columns * kPanelWidth, i / columns * kPanelHeight);
  return picture.png();
}

}  // namespace syncline::tools
