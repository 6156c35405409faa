// syncline stat FILE [NAME...]: statistics of a file's arrays.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/printable.h"
#include "io/files/atomic_file.h"
#include "tools/array_stats.h"
#include "tools/command.h"
#include "tools/confined.h"
#include "tools/histogram_picture.h"
#include "tools/selection.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBins = 10, kPictureBins = 50;
constexpr int kBarWidth = 40;

struct Options {
  std::string file;
  std::vector<std::string> names;
  bool histogram = false, json = false;
  int bins = 0;         // 0: as many as fit
  std::string picture;  // a PNG to write instead of a text
  Limits limits;
};

constexpr std::size_t kColumns = 10;
using Row = std::array<std::string, kColumns>;

struct Described {
  io::ArrayEntry entry;
  ArrayStats stats;
};

std::int64_t bytes_of(const io::ArrayEntry& entry) {
  return entry.shape.size() * static_cast<std::int64_t>(size_of(entry.dtype));
}

std::string text_of(const Number& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return fmt::format("{}", *integer);
  return fmt::format("{:.6g}", std::get<double>(number));
}
std::string text_of(const std::optional<Number>& number) { return number ? text_of(*number) : "-"; }

Row row_of(const Described& array) {
  const ArrayStats& stats = array.stats;
  const bool any = stats.finite > 0;
  return {printable(array.entry.name),
          std::string(name_of(array.entry.dtype)),
          join_text(array.entry.shape),
          fmt::format("{}", bytes_of(array.entry)),
          fmt::format("{}", stats.nan),
          fmt::format("{}", stats.infinite),
          text_of(stats.min),
          text_of(stats.max),
          any ? fmt::format("{:.6g}", stats.mean) : "-",
          any ? fmt::format("{:.6g}", stats.norm) : "-"};
}

double as_double(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

// One line per part: its lower bound, a bar, its number of values.
std::string histogram_text(const ArrayStats& stats) {
  std::string text;
  if (stats.histogram.empty()) return text;
  const std::int64_t most = *std::max_element(stats.histogram.begin(), stats.histogram.end());
  const double min = as_double(*stats.min), max = as_double(*stats.max);
  const auto bins = static_cast<double>(stats.histogram.size());
  for (std::size_t i = 0; i < stats.histogram.size(); ++i) {
    const double part = static_cast<double>(i) / bins;
    const std::int64_t count = stats.histogram[i];
    const std::int64_t width = count == 0 ? 0 : std::max<std::int64_t>(1, count * kBarWidth / most);
    fmt::format_to(std::back_inserter(text), "  {:>12.5g}  {:<{}}  {}\n", min * (1 - part) + max * part,
                   std::string(static_cast<std::size_t>(width), '#'), kBarWidth, count);
  }
  return text;
}

std::string table_text(const std::vector<Described>& arrays) {
  std::vector<Row> rows{{"name", "dtype", "shape", "bytes", "nan", "inf", "min", "max", "mean", "norm"}};
  for (const Described& array : arrays) rows.push_back(row_of(array));
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());

  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string space(widths[i] - rows[r][i].size(), ' ');
      const bool left = i < 3;  // text columns; numbers are right-aligned
      text += (i == 0 ? "" : "  ") + (left ? rows[r][i] + space : space + rows[r][i]);
    }
    text += '\n';
    if (r > 0) text += histogram_text(arrays[r - 1].stats);
  }
  return text;
}

Json json_of(const std::optional<Number>& number) {
  if (!number) return {};
  return std::visit([](auto value) { return Json(value); }, *number);
}

std::string json_text(const Options& options, const std::vector<Described>& arrays) {
  Json list = Json::array();
  for (const auto& [entry, stats] : arrays) {
    const bool any = stats.finite > 0;
    Json row{{"name", entry.name},
             {"dtype", name_of(entry.dtype)},
             {"shape", entry.shape.dims()},
             {"bytes", bytes_of(entry)},
             {"nan", stats.nan},
             {"inf", stats.infinite},
             {"min", json_of(stats.min)},
             {"max", json_of(stats.max)},
             {"mean", any ? Json(stats.mean) : Json()},
             {"norm", any ? Json(stats.norm) : Json()}};
    if (options.histogram) row["histogram"] = stats.histogram;
    list.push_back(std::move(row));
  }
  const Json document{{"file", options.file}, {"arrays", std::move(list)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string describe(const Options& options) {
  const auto file = io::open_array_file(options.file);
  std::vector<Described> arrays;
  for (const std::size_t index : select_entries(options.file, *file, options.names))
    arrays.push_back({file->entries()[index], stats_of(file->read(index), options.histogram ? options.bins : 0)});
  return options.json ? json_text(options, arrays) : table_text(arrays);
}

std::string number_text(const Json& number) {
  return number.is_null() ? "" : fmt::format("{:.6g}", number.get<double>());
}

HistogramPanel panel_of(const Json& array) {
  HistogramPanel panel;
  panel.title = printable(array["name"].get<std::string>());
  panel.note = fmt::format("{} {}", array["dtype"].get<std::string>(), array["shape"].dump());
  for (const char* what : {"nan", "inf"}) {
    const auto count = array[what].get<std::int64_t>();
    if (count == 0) continue;
    panel.note += fmt::format(", {} {}", count, what);
    panel.warns = true;
  }
  panel.min = number_text(array["min"]);
  panel.max = number_text(array["max"]);
  panel.counts = array["histogram"].get<std::vector<std::int64_t>>();
  return panel;
}

// The child reads the file and counts. This process may write files, so it draws the picture.
void draw(Options options) {
  options.json = options.histogram = true;
  if (options.bins == 0) options.bins = kPictureBins;
  const Json document = Json::parse(run_confined({options.file}, options.limits, [&] { return describe(options); }));
  std::vector<HistogramPanel> panels;
  for (const Json& array : document["arrays"]) panels.push_back(panel_of(array));
  io::write_file_durably(options.picture, draw_histograms(panels));
}

void stat(Options options) {
  if (!options.picture.empty()) return draw(options);
  if (options.bins == 0) options.bins = kBins;
  const std::string text = run_confined({options.file}, options.limits, [&] { return describe(options); });
  fmt::print("{}", printable(text, true));
}

}  // namespace

void add_stat(CLI::App& program) {
  CLI::App* command = program.add_subcommand("stat", "Print NaNs, infinities, range, mean and norm of a file's arrays");
  const auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "A checkpoint")->required();
  command->add_option("NAME", options->names, "The arrays to examine [all]");
  command->add_flag("--histogram", options->histogram, "Count the values in equal parts of their range");
  command->add_option("--bins", options->bins, "Parts of the histogram [10, in a picture 50]")
      ->check(CLI::Range(1, 1000));
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  command->add_option("--png", options->picture, "Draw the histograms into this file instead of printing")
      ->excludes(json);
  add_limits(*command, options->limits);
  command->callback([options] { stat(*options); });
}

}  // namespace syncline::tools
