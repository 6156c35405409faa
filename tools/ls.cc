// syncline ls FILE: the arrays of a checkpoint and the progress of its training.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "io/checkpoint/fields.h"
#include "io/checkpoint/json.h"
#include "tools/command.h"
#include "tools/confined.h"

namespace syncline::tools {
namespace {

using io::CheckpointSummary;
using io::WeightSpec;

struct Options {
  std::string file;
  bool json = false;
  Limits limits;
};

std::int64_t bytes_of(const WeightSpec& weight) {
  return weight.shape.size() * static_cast<std::int64_t>(size_of(weight.dtype));
}

std::vector<WeightSpec> layer_weights(const CheckpointSummary& summary) {
  std::vector<WeightSpec> weights;
  for (const io::LayerSpec& layer : summary.spec.layers)
    weights.insert(weights.end(), layer.weights.begin(), layer.weights.end());
  return weights;
}

struct Row {
  std::string name, dtype, shape;
  std::int64_t bytes = 0;
};

class Table {
 public:
  void add(const WeightSpec& weight) {
    Row row{printable(weight.name), std::string(name_of(weight.dtype)), join_text(weight.shape), bytes_of(weight)};
    name_ = std::max(name_, row.name.size());
    shape_ = std::max(shape_, row.shape.size());
    total_ += row.bytes;
    rows_.push_back(std::move(row));
  }

  // Rows [begin, end) under a heading.
  std::string text(const char* heading, std::size_t begin, std::size_t end) const {
    if (begin == end) return "";
    std::string text = fmt::format("{}\n", heading);
    for (std::size_t i = begin; i < end; ++i)
      fmt::format_to(std::back_inserter(text), "  {:<{}}  {:<7}  {:<{}}  {:>{}}\n", rows_[i].name, name_,
                     rows_[i].dtype, rows_[i].shape, shape_, rows_[i].bytes, fmt::formatted_size("{}", total_));
    return text;
  }

  std::size_t size() const { return rows_.size(); }
  std::int64_t total() const { return total_; }

 private:
  std::vector<Row> rows_;
  std::size_t name_ = 0, shape_ = 0;
  std::int64_t total_ = 0;
};

// Formats a field for people; "" if it is absent.
std::string value_text(const std::string& value) { return value; }
std::string value_text(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }
std::string value_text(const std::map<std::string, std::string>& notes) {
  std::string names;
  for (const auto& [name, text] : notes) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string head_text(const io::CheckpointHead& head) {
  std::string text;
  const auto line = [&](std::string name, const auto& value) {
    std::replace(name.begin(), name.end(), '_', ' ');
    fmt::format_to(std::back_inserter(text), "  {:<12} {}\n", name, value);
  };
  if (!head.has_state) return text;
  text = "state\n";
  io::for_each_state_field(head.state, line);
  io::for_each_head_field(head, [&](const char* name, const auto& value, bool) {
    if (const std::string shown = value_text(value); !shown.empty()) line(name, printable(shown));
  });
  return text;
}

std::string text_of(const CheckpointSummary& summary) {
  Table table;
  for (const WeightSpec& weight : layer_weights(summary)) table.add(weight);
  const std::size_t weights = table.size();
  for (const WeightSpec& weight : summary.spec.optimizer) table.add(weight);

  return table.text("weights", 0, weights) + table.text("optimizer", weights, table.size()) + head_text(summary) +
         fmt::format("total {} arrays, {} bytes\n", table.size(), table.total());
}

nlohmann::ordered_json json_of(const std::vector<WeightSpec>& weights) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const WeightSpec& weight : weights)
    list.push_back({{"name", weight.name},
                    {"dtype", name_of(weight.dtype)},
                    {"shape", weight.shape.dims()},
                    {"bytes", bytes_of(weight)}});
  return list;
}

std::string json_text(const std::string& file, const CheckpointSummary& summary) {
  const std::vector<WeightSpec> weights = layer_weights(summary);
  std::int64_t total = 0;
  for (const WeightSpec& weight : weights) total += bytes_of(weight);
  for (const WeightSpec& weight : summary.spec.optimizer) total += bytes_of(weight);
  nlohmann::ordered_json document{{"file", file}};
  document.update(io::json_of(summary));
  document["weights"] = json_of(weights);
  document["optimizer"] = json_of(summary.spec.optimizer);
  document["bytes"] = total;
  // Names may be invalid UTF-8: replace such bytes instead of throwing.
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void list(const Options& options) {
  const auto work = [&] {
    const CheckpointSummary summary = io::summarize_checkpoint(options.file);
    return options.json ? json_text(options.file, summary) : text_of(summary);
  };
  fmt::print("{}", printable(run_confined({options.file}, options.limits, work), true));
}

}  // namespace

void add_ls(CLI::App& program) {
  CLI::App* command = program.add_subcommand("ls", "List the arrays of a checkpoint and the position of its training");
  const auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "The checkpoint")->required();
  command->add_flag("--json", options->json, "Print JSON");
  add_limits(*command, options->limits);
  command->callback([options] { list(*options); });
}

}  // namespace syncline::tools
