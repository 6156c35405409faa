#include "io/arrays/checkpoint_outline.h"

#include <map>
#include <nlohmann/json.hpp>

#include "io/checkpoint/json.h"
#include "io/files/refuse.h"

namespace syncline::io {
namespace {

using Json = nlohmann::ordered_json;

Json names_of(const std::vector<WeightSpec>& weights) {
  Json names = Json::array();
  for (const WeightSpec& weight : weights) names.push_back(weight.name);
  return names;
}

std::vector<WeightSpec> weights_of(const Json& names) {
  std::vector<WeightSpec> weights;
  for (const std::string& name : names.get<std::vector<std::string>>()) weights.push_back({name, {}, {}});
  return weights;
}

// Throws nlohmann's exceptions if `text` is not an outline.
CheckpointSummary parse_outline(const std::string& text) {
  const Json json = Json::parse(text);
  CheckpointSummary summary{head_of(json), {}};
  for (const Json& layer : json.at("layers"))
    summary.spec.layers.push_back({layer.at("name").get<std::string>(), weights_of(layer.at("weights"))});
  summary.spec.optimizer = weights_of(json.at("optimizer"));
  return summary;
}

std::string layer_of(const std::string& name) {
  const std::size_t end = name.find_last_of("/.");
  return end == std::string::npos || end == 0 ? name : name.substr(0, end);
}

CheckpointSummary guess_outline(const ArrayFile& file) {
  CheckpointSummary summary;
  summary.has_state = false;
  std::map<std::string, std::size_t> layers;
  for (const ArrayEntry& entry : file.entries()) {
    const auto [at, fresh] = layers.emplace(layer_of(entry.name), summary.spec.layers.size());
    if (fresh) summary.spec.layers.push_back({at->first, {}});
    summary.spec.layers[at->second].weights.push_back({entry.name, entry.dtype, entry.shape});
  }
  return summary;
}

CheckpointSummary summary_of(const std::string& path, const ArrayFile& file) {
  if (file.outline().empty()) return guess_outline(file);
  try {
    return parse_outline(file.outline());
  } catch (const nlohmann::json::exception& error) {
    refuse("file '", path, "': its outline of a checkpoint is damaged: ", error.what());
  }
}

}  // namespace

std::string outline_text(const std::string& path, const CheckpointSummary& summary) {
  Json layers = Json::array();
  for (const LayerSpec& layer : summary.spec.layers)
    layers.push_back({{"name", layer.name}, {"weights", names_of(layer.weights)}});
  Json json = json_of(summary);
  json["layers"] = std::move(layers);
  json["optimizer"] = names_of(summary.spec.optimizer);
  try {
    return json.dump();
  } catch (const nlohmann::json::exception&) {
    refuse("checkpoint '", path, "': a name is not UTF-8, which other formats require");
  }
}

Checkpoint checkpoint_of(const std::string& path, ArrayFile& file) {
  const CheckpointSummary summary = summary_of(path, file);
  Checkpoint checkpoint{summary, {}, {}};
  std::map<std::string, std::size_t> indices;
  for (std::size_t i = 0; i < file.entries().size(); ++i) indices.emplace(file.entries()[i].name, i);
  const std::vector<ArrayEntry> wanted = entries_of(path, summary.spec);
  if (wanted.size() != indices.size())
    refuse("file '", path, "': its outline names ", wanted.size(), " arrays, but it has ", indices.size());
  std::size_t next = 0;
  const auto take = [&](const std::vector<WeightSpec>& specs, std::vector<Weight>& weights) {
    for (const WeightSpec& spec : specs) {
      const auto found = indices.find(wanted[next++].name);
      if (found == indices.end())
        refuse("file '", path, "': its outline names '", wanted[next - 1].name, "', which the file does not have");
      weights.push_back({spec.name, file.read(found->second)});
    }
  };
  for (const LayerSpec& layer : summary.spec.layers)
    take(layer.weights, checkpoint.layers.emplace_back(Layer{layer.name, {}}).weights);
  take(summary.spec.optimizer, checkpoint.optimizer);
  return checkpoint;
}

}  // namespace syncline::io
