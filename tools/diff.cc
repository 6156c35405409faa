// syncline diff A B: whether two files hold the same arrays. The exit statuses are those of diff(1).
#include <fmt/core.h>

#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/printable.h"
#include "tools/array_diff.h"
#include "tools/command.h"
#include "tools/confined.h"
#include "tools/selection.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::ordered_json;
using io::ArrayEntry;

constexpr int kDifferent = 1;

struct Options {
  std::string a, b;
  Tolerances tolerances;
  bool json = false;
  Limits limits;
};

struct Differing {
  ArrayEntry a, b;
  ArrayDifference values;  // only if dtype and shape are equal

  bool comparable() const { return a.dtype == b.dtype && a.shape == b.shape; }
};

struct Comparison {
  std::vector<std::string> only_a, only_b;
  std::vector<Differing> differing;

  bool same() const { return only_a.empty() && only_b.empty() && differing.empty(); }
};

Comparison compare_files(const Options& options) {
  const auto a = io::open_array_file(options.a), b = io::open_array_file(options.b);
  std::map<std::string, std::size_t> others;
  for (std::size_t i = 0; i < b->entries().size(); ++i) others.emplace(b->entries()[i].name, i);

  Comparison result;
  for (std::size_t i = 0; i < a->entries().size(); ++i) {
    const ArrayEntry& entry = a->entries()[i];
    const auto other = others.find(entry.name);
    if (other == others.end()) {
      result.only_a.push_back(entry.name);
      continue;
    }
    Differing pair{entry, b->entries()[other->second], {}};
    if (pair.comparable()) pair.values = compare(a->read(i), b->read(other->second), options.tolerances);
    if (!pair.comparable() || pair.values.differing > 0) result.differing.push_back(std::move(pair));
    others.erase(other);
  }
  for (const ArrayEntry& entry : b->entries())
    if (others.contains(entry.name)) result.only_b.push_back(entry.name);
  return result;
}

Shape index_of(std::int64_t element, const Shape& shape) {
  std::vector<std::int64_t> index(shape.dims().size());
  for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = element % shape[axis];
    element /= shape[axis];
  }
  return Shape(std::move(index));
}

std::string at(std::int64_t element, const Shape& shape) { return join_text(" at ", index_of(element, shape)); }

std::string line_of(const Differing& pair) {
  const std::string name = printable(pair.a.name);
  if (!pair.comparable())
    return join_text(name, ": ", pair.a.dtype, " ", pair.a.shape, " in the first, ", pair.b.dtype, " ", pair.b.shape,
                     " in the second\n");
  const ArrayDifference& values = pair.values;
  const Shape& shape = pair.a.shape;
  std::string line = join_text(name, ": ", values.differing, " of ", values.elements, " values differ");
  const auto add = std::back_inserter(line);
  if (values.special > 0)
    fmt::format_to(add, "; {} NaN or infinite on one side, the first{}", values.special, at(values.special_at, shape));
  if (values.absolute.at >= 0)
    fmt::format_to(add, "; largest difference {:.6g}{}, relative {:.6g}{}", values.absolute.value,
                   at(values.absolute.at, shape), values.relative.value, at(values.relative.at, shape));
  if (values.ulps && values.ulps->at >= 0)
    fmt::format_to(add, ", {} ULP{}", values.ulps->value, at(values.ulps->at, shape));
  return line + "\n";
}

std::string text_of(const Options& options, const Comparison& result) {
  std::string text;
  for (const std::string& name : result.only_a) text += join_text("only in ", options.a, ": ", printable(name), "\n");
  for (const std::string& name : result.only_b) text += join_text("only in ", options.b, ": ", printable(name), "\n");
  for (const Differing& pair : result.differing) text += line_of(pair);
  return text;
}

template <class T>
Json json_of(const Largest<T>& largest, const Shape& shape) {
  if (largest.at < 0) return {};
  return {{"value", largest.value}, {"index", index_of(largest.at, shape).dims()}};
}

Json json_of(const ArrayEntry& entry) { return {{"dtype", name_of(entry.dtype)}, {"shape", entry.shape.dims()}}; }

Json json_of(const Differing& pair) {
  Json row{{"name", pair.a.name}, {"a", json_of(pair.a)}, {"b", json_of(pair.b)}};
  if (!pair.comparable()) return row;
  const ArrayDifference& values = pair.values;
  const Shape& shape = pair.a.shape;
  row["elements"] = values.elements;
  row["differing"] = values.differing;
  row["special"] = values.special;
  row["first_special"] = values.special > 0 ? Json(index_of(values.special_at, shape).dims()) : Json();
  row["absolute"] = json_of(values.absolute, shape);
  row["relative"] = json_of(values.relative, shape);
  row["ulps"] = values.ulps ? json_of(*values.ulps, shape) : Json();
  return row;
}

std::string json_text(const Options& options, const Comparison& result) {
  Json differing = Json::array();
  for (const Differing& pair : result.differing) differing.push_back(json_of(pair));
  const Json document{{"a", options.a},
                      {"b", options.b},
                      {"same", result.same()},
                      {"only_in_a", result.only_a},
                      {"only_in_b", result.only_b},
                      {"differing", std::move(differing)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void diff(const Options& options) {
  // The answer's first byte says whether the files are the same.
  const auto work = [&] {
    const Comparison result = compare_files(options);
    return (result.same() ? "=" : "!") + (options.json ? json_text(options, result) : text_of(options, result));
  };
  std::string answer;
  try {
    answer = run_confined({options.a, options.b}, options.limits, work);
  } catch (const Error& error) {
    throw ConfinementError(error.what());
  }
  fmt::print("{}", printable(answer.substr(1), true));
  end_with(answer[0] == '=' ? 0 : kDifferent);
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("diff", "Compare the arrays of two files. Exit status: 0 same, 1 different, 2 error");
  const auto options = std::make_shared<Options>();
  command->add_option("A", options->a, "A file with arrays")->required();
  command->add_option("B", options->b, "Another file with arrays")->required();
  command->add_option("--atol", options->tolerances.atol, "Allow |a - b| up to this [0]")->check(not_negative());
  command->add_option("--rtol", options->tolerances.rtol, "... plus this times the larger of |a| and |b| [0]")
      ->check(not_negative());
  command->add_option("--ulps", options->tolerances.ulps, "Or allow up to this many ULPs (steps between floats) [0]")
      ->check(CLI::Range(0.0, 9e18));
  command->add_flag("--json", options->json, "Print JSON");
  add_limits(*command, options->limits);
  command->callback([options] { diff(*options); });
}

}  // namespace syncline::tools
