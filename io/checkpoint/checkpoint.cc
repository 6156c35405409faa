// Layout: docs/checkpoint_format.md.
#include "syncline/checkpoint/checkpoint.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "io/checkpoint/format.h"
#include "io/checkpoint/shard_files.h"
#include "io/hdf5/array.h"
#include "io/hdf5/array_reader.h"
#include "io/hdf5/file.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline::io {
namespace {

// The group in which Keras on TensorFlow stores weights of the model outside its layers. They are read as a layer.
constexpr const char* kModelsOwn = "top_level_model_weights";

// Reads a list of names without repeats: a repeated name could load the same array a million times.
std::vector<std::string> read_unique_names(const Hdf5Group& group, const std::string& attribute) {
  std::vector<std::string> names = group.read_names(attribute);
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    if (name.empty() || !seen.insert(name).second)
      fail_at(group.location_of(attribute), join_text("lists '", name, "' twice or is empty; the file is damaged"));
  return names;
}

std::vector<std::string> names_of_layers(const Hdf5Group& group) {
  std::vector<std::string> names = read_unique_names(group, "layer_names");
  const bool own = std::find(names.begin(), names.end(), kModelsOwn) == names.end() && group.has(kModelsOwn) &&
                   !group.group(kModelsOwn).read_names("weight_names").empty();
  if (own) names.emplace_back(kModelsOwn);
  return names;
}

// Calls read(group, name) for each weight listed in `group`.
template <class Read>
auto read_weights(const Hdf5Group& group, Read read) {
  std::vector<decltype(read(group, std::string()))> weights;
  for (const std::string& name : read_unique_names(group, "weight_names")) weights.push_back(read(group, name));
  return weights;
}

// A model file stores its weights in a group, a save_weights file at the root.
Hdf5Group weights_group(const Hdf5Group& root) { return root.group(root.has(kWeightsGroup) ? kWeightsGroup : ""); }

template <class LayerType, class Read>
std::vector<LayerType> read_layers(const Hdf5Group& root, Read read) {
  const Hdf5Group group = weights_group(root);
  std::vector<LayerType> layers;
  for (const std::string& name : names_of_layers(group))
    layers.push_back({name, read_weights(group.group(name), read)});
  return layers;
}

template <class Read>
auto read_optimizer(const Hdf5Group& root, Read read) {
  using Weights = decltype(read_weights(root, read));
  return root.has(kOptimizerGroup) ? read_weights(root.group(kOptimizerGroup), read) : Weights();
}

Hdf5File open_checkpoint(const std::string& path, KerasFiles others) {
  Hdf5File file = Hdf5File::open(path);
  if (file.root().has(kStateGroup)) file.refuse_variable_texts();
  else if (others == KerasFiles::kRefused)
    fail_at(file.root().location(), "holds weights only, not the position of a training; train without resuming it");
  return file;
}

bool is_shard(const Hdf5Group& root) { return root.has(kStateGroup) && root.group(kStateGroup).has_attribute(kShard); }

CheckpointHead read_head_of(const Hdf5Group& root) {
  CheckpointHead head;
  head.has_state = root.has(kStateGroup);
  if (!head.has_state) return head;
  const Hdf5Group group = root.group(kStateGroup);
  if (group.has_attribute(kShard))
    fail_at(root.location(), "is one shard of a checkpoint; use the file without '.shard-...' in its name");
  return read_head(group);
}

// Records the errors of `action`, so that verification continues.
template <class Action>
void note_problems(VerifyReport& report, Action action) {
  try {
    action();
  } catch (const UnreadableError& error) {
    report.readable = false;
    report.problems.emplace_back(error.what());
  } catch (const Error& error) {
    report.problems.emplace_back(error.what());
  }
}

void verify_contents(const Hdf5File& file, VerifyReport& report) {
  const Hdf5Group& root = file.root();
  ShardFiles shards(file);
  std::vector<ArrayHeader> headers;
  const auto read = [&](const Hdf5Group& group, const std::string& name) {
    note_problems(report, [&] {
      StoredArray stored = read_array(shards.open(group, name));
      ++report.arrays;
      report.bytes += static_cast<std::int64_t>(stored.value.bytes());
      headers.push_back(std::move(stored.header));
    });
    return 0;
  };
  report.is_shard = is_shard(root);
  if (report.is_shard) {
    note_problems(report, [&] { read_state(root.group(kStateGroup)); });
    for (const char* name : {kWeightsGroup, kOptimizerGroup}) {
      if (!root.has(name)) continue;
      note_problems(report, [&] {
        const Hdf5Group group = root.group(name);  // a shard does not list its weights
        for (const std::string& path : group.leaves()) read(group, path);
      });
    }
  } else {
    note_problems(report, [&] { read_head_of(root); });
    note_problems(report, [&] {
      const Hdf5Group group = weights_group(root);
      for (const std::string& name : names_of_layers(group))
        note_problems(report, [&] { read_weights(group.group(name), read); });
    });
    note_problems(report, [&] { read_optimizer(root, read); });
  }
  report.has_digests = std::all_of(headers.begin(), headers.end(), [](const auto& h) { return !h.digest.empty(); });
  // After another problem the root digest would only repeat it.
  if (report.problems.empty()) note_problems(report, [&] { verify_root(root, headers); });
}

WeightSpec spec_of_weight(const Weight& weight) { return {weight.name, weight.value.dtype(), weight.value.shape()}; }

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const timeline::Span traced("file", "save a checkpoint");
  const Hdf5Session session;
  Hdf5File file = Hdf5File::create(path);
  write_checkpoint(file, checkpoint, [&](const Hdf5Group& group, const Weight& weight) {
    return write_array(file, group, weight.name, weight.value);
  });
  file.commit();
}

Checkpoint load_checkpoint(const std::string& path, KerasFiles others) {
  const timeline::Span traced("file", "load a checkpoint");
  const Hdf5Session session;
  const Hdf5File file = open_checkpoint(path, others);
  std::vector<ArrayHeader> headers;
  ArrayReader reader;
  ShardFiles shards(file);
  const auto read = [&](const Hdf5Group& group, const std::string& name) {
    StoredArray stored = reader.begin(shards.open(group, name));
    headers.push_back(std::move(stored.header));
    return Weight{name, std::move(stored.value)};
  };
  Checkpoint checkpoint{read_head_of(file.root()), {}, {}};
  checkpoint.layers = read_layers<Layer>(file.root(), read);
  checkpoint.optimizer = read_optimizer(file.root(), read);
  reader.finish();
  verify_root(file.root(), headers);
  return checkpoint;
}

CheckpointSummary summarize_checkpoint(const std::string& path, KerasFiles others) {
  const Hdf5Session session;
  const Hdf5File file = open_checkpoint(path, others);
  std::vector<ArrayHeader> headers;
  ShardFiles shards(file);
  const auto read = [&](const Hdf5Group& group, const std::string& name) {
    headers.push_back(header_of(shards.open(group, name)));
    return WeightSpec{name, headers.back().dtype, headers.back().shape};
  };
  CheckpointSummary summary{read_head_of(file.root()), {}};
  summary.spec.layers = read_layers<LayerSpec>(file.root(), read);
  summary.spec.optimizer = read_optimizer(file.root(), read);
  verify_root(file.root(), headers);
  return summary;
}

VerifyReport verify_checkpoint(const std::string& path, KerasFiles others) {
  const Hdf5Session session;
  VerifyReport report;
  note_problems(report, [&] { verify_contents(open_checkpoint(path, others), report); });
  return report;
}

ModelSpec spec_of(const Checkpoint& checkpoint) {
  ModelSpec spec;
  for (const Layer& layer : checkpoint.layers) {
    LayerSpec& copy = spec.layers.emplace_back(LayerSpec{layer.name, {}});
    for (const Weight& weight : layer.weights) copy.weights.push_back(spec_of_weight(weight));
  }
  for (const Weight& weight : checkpoint.optimizer) spec.optimizer.push_back(spec_of_weight(weight));
  return spec;
}

}  // namespace syncline::io
