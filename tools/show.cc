// syncline show FILE NAME: the values of one array.
#include <fmt/core.h>

#include <charconv>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/printable.h"
#include "tools/command.h"
#include "tools/confined.h"
#include "tools/selection.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string file, name, rows;
  bool json = false;
  Limits limits;
};

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(Float16 value) { return fmt::format("{:.5g}", static_cast<float>(value)); }  // tells halves apart
template <class T>
std::string text_of(T value) {
  return fmt::format("{}", value);  // the shortest text that reads back as the same float
}

Json json_of(Float16 value) { return static_cast<float>(value); }
template <class T>
Json json_of(T value) {
  return value;
}

std::int64_t parse_row(const std::string& rows, std::string_view text, std::int64_t missing) {
  if (text.empty()) return missing;
  std::int64_t row = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
  if (error != std::errc() || end != text.data() + text.size() || row < 0)
    fail<ValueError>("--rows '", rows, "': give FIRST:END, such as 0:10, or the number of one row");
  return row;
}

struct Rows {
  std::int64_t begin = 0, end = 0;
};

// Parses "3", "2:5", ":5" or "2:", which count along the first axis; the end is exclusive.
Rows rows_of(const std::string& rows, const Shape& shape) {
  if (shape.ndim() == 0) {
    if (!rows.empty()) fail<ValueError>("--rows: the array is a scalar, which has no rows");
    return {0, 1};
  }
  const std::size_t colon = rows.find(':');
  Rows wanted{0, shape[0]};
  if (colon != std::string::npos) {
    wanted.begin = parse_row(rows, std::string_view(rows).substr(0, colon), 0);
    wanted.end = parse_row(rows, std::string_view(rows).substr(colon + 1), shape[0]);
  } else if (!rows.empty()) {
    wanted.begin = parse_row(rows, rows, 0);
    wanted.end = wanted.begin + 1;
  }
  if (wanted.begin > wanted.end || wanted.end > shape[0])
    fail<ValueError>("--rows ", rows, ": the array has rows 0 to ", shape[0] - 1);
  return wanted;
}

// One line per row of the last axis, after its indices along the other axes.
std::string values_text(const Array& array, std::int64_t first_row) {
  const Shape& shape = array.shape();
  const std::int64_t width = shape.ndim() <= 1 ? 1 : shape.back();
  std::string text;
  with_stored_dtype(array.dtype(), [&](auto zero) {
    const auto values = array.values<decltype(zero)>();
    for (std::int64_t i = 0; i < array.size(); ++i) {
      if (i % width == 0) {
        std::string index;
        std::int64_t rest = i / width;
        for (int axis = shape.ndim() <= 1 ? shape.ndim() - 1 : shape.ndim() - 2; axis >= 0; --axis) {
          const std::int64_t at = rest % shape[axis] + (axis == 0 ? first_row : 0);
          index = fmt::format("{}{}{}", at, index.empty() ? "" : ", ", index);
          rest /= shape[axis];
        }
        fmt::format_to(std::back_inserter(text), "{}[{}]", i == 0 ? "" : "\n", index);
      }
      text += ' ';
      text += text_of(values[static_cast<std::size_t>(i)]);
    }
  });
  return text.empty() ? text : text + "\n";
}

std::string json_text(const io::ArrayEntry& entry, const Array& array, const Rows& rows) {
  Json values = Json::array();
  with_stored_dtype(array.dtype(), [&](auto zero) {
    for (const auto value : array.values<decltype(zero)>()) values.push_back(json_of(value));
  });
  const Json document{{"name", entry.name},
                      {"dtype", name_of(entry.dtype)},
                      {"shape", entry.shape.dims()},
                      {"rows", {rows.begin, rows.end}},
                      {"values", std::move(values)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string show_text(const Options& options) {
  const auto file = io::open_array_file(options.file);
  const std::size_t index = find_entry(options.file, *file, options.name);
  const io::ArrayEntry& entry = file->entries()[index];
  const Rows rows = rows_of(options.rows, entry.shape);
  const Array whole = file->read(index);
  const Array array = entry.shape.ndim() == 0 ? whole : whole.rows(rows.begin, rows.end);
  if (options.json) return json_text(entry, array, rows);
  return join_text(printable(entry.name), "  ", entry.dtype, "  ", entry.shape, "\n", values_text(array, rows.begin));
}

void show(const Options& options) {
  const std::string text = run_confined({options.file}, options.limits, [&] { return show_text(options); });
  fmt::print("{}", printable(text, true));
}

}  // namespace

void add_show(CLI::App& program) {
  CLI::App* command = program.add_subcommand("show", "Print the values of one array");
  const auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "A file with arrays")->required();
  command->add_option("NAME", options->name, "The array's name")->required();
  command->add_option("--rows", options->rows, "Rows along the first axis: FIRST:END, or one row [all]");
  command->add_flag("--json", options->json, "Print JSON: the values in C order");
  add_limits(*command, options->limits);
  command->callback([options] { show(*options); });
}

}  // namespace syncline::tools
