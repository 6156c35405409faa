// syncline ls FILE: the arrays of a checkpoint and where its training stands.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/printable.h"
#include "io/checkpoint.h"
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

std::string state_text(const io::TrainingState& state) {
  std::string text = "state\n";
  const auto line = [&](const char* name, auto value) {
    fmt::format_to(std::back_inserter(text), "  {:<12} {}\n", name, value);
  };
  line("epoch", state.epoch);
  line("step", state.step);
  line("global step", state.global_step);
  line("seed", state.seed);
  line("random step", state.random_step);
  line("batch", state.batch);
  line("samples", state.samples);
  return text;
}

std::string text_of(const CheckpointSummary& summary) {
  Table table;
  for (const WeightSpec& weight : layer_weights(summary)) table.add(weight);
  const std::size_t weights = table.size();
  for (const WeightSpec& weight : summary.spec.optimizer) table.add(weight);

  std::string text = summary.model.empty() ? "" : fmt::format("model {}\n", printable(summary.model));
  text += table.text("weights", 0, weights) + table.text("optimizer", weights, table.size());
  if (summary.has_state) text += state_text(summary.state);
  return text + fmt::format("total {} arrays, {} bytes\n", table.size(), table.total());
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

nlohmann::ordered_json json_of(const io::TrainingState& state) {
  return {{"epoch", state.epoch},
          {"step", state.step},
          {"global_step", state.global_step},
          {"seed", state.seed},
          {"random_step", state.random_step},
          {"batch", state.batch},
          {"samples", state.samples}};
}

std::string json_text(const std::string& file, const CheckpointSummary& summary) {
  const std::vector<WeightSpec> weights = layer_weights(summary);
  std::int64_t total = 0;
  for (const WeightSpec& weight : weights) total += bytes_of(weight);
  for (const WeightSpec& weight : summary.spec.optimizer) total += bytes_of(weight);
  nlohmann::ordered_json document{{"file", file}, {"model", summary.model}};
  document["weights"] = json_of(weights);
  document["optimizer"] = json_of(summary.spec.optimizer);
  document["state"] = summary.has_state ? json_of(summary.state) : nlohmann::ordered_json();
  document["bytes"] = total;
  // Names need not be UTF-8; what is not is replaced, not an exception.
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
  CLI::App* command = program.add_subcommand("ls", "List the arrays of a checkpoint and where its training stands");
  const auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "The checkpoint")->required();
  command->add_flag("--json", options->json, "Print JSON");
  add_limits(*command, options->limits);
  command->callback([options] { list(*options); });
}

}  // namespace syncline::tools
