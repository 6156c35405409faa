#include "io/arrays/array_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "io/arrays/checkpoint_outline.h"
#include "io/arrays/npz.h"
#include "io/arrays/safetensors.h"
#include "io/checkpoint/shard_files.h"
#include "io/files/random_access_file.h"
#include "io/files/refuse.h"
#include "io/hdf5/array_reader.h"
#include "io/hdf5/file.h"

namespace syncline::io {
namespace {

class CheckpointArrays : public ArrayFile {
 public:
  CheckpointArrays(const std::string& path, const CheckpointSummary& summary)
      : ArrayFile(entries_of(path, summary.spec), outline_text(path, summary)), file_(Hdf5File::open(path)) {
    const ModelSpec& model = summary.spec;
    const std::string root = file_.root().has("model_weights") ? "model_weights/" : "";
    for (const LayerSpec& layer : model.layers)
      for (const WeightSpec& weight : layer.weights) places_.push_back({root + layer.name, weight.name});
    for (const WeightSpec& weight : model.optimizer) places_.push_back({"optimizer_weights", weight.name});
  }

  bool holds_model() const override { return file_.root().has_attribute("model_config"); }

  Array read(std::size_t index) override {
    return read_array(shards_.open(file_.root().group(places_.at(index).group), places_.at(index).name)).value;
  }

 private:
  struct Place {
    std::string group, name;
  };

  Hdf5Session session_;  // outlives the file
  Hdf5File file_;
  ShardFiles shards_{file_};
  std::vector<Place> places_;
};

}  // namespace

std::vector<ArrayEntry> entries_of(const std::string& path, const ModelSpec& model) {
  std::map<std::string, int> uses;
  for (const LayerSpec& layer : model.layers)
    for (const WeightSpec& weight : layer.weights) ++uses[weight.name];
  for (const WeightSpec& weight : model.optimizer) ++uses[weight.name];

  std::vector<ArrayEntry> entries;
  std::set<std::string> seen;
  const auto add = [&](const std::string& owner, const WeightSpec& weight) {
    const std::string name = uses[weight.name] == 1 ? weight.name : owner + "/" + weight.name;
    if (!seen.insert(name).second) refuse("checkpoint '", path, "': two arrays have the name '", name, "'");
    entries.push_back({name, weight.dtype, weight.shape});
  };
  for (const LayerSpec& layer : model.layers)
    for (const WeightSpec& weight : layer.weights) add(layer.name, weight);
  for (const WeightSpec& weight : model.optimizer) add("optimizer", weight);
  return entries;
}

std::unique_ptr<ArrayFile> open_array_file(const std::string& path) {
  std::array<char, 9> begin{};
  {
    const auto file = open_random_access_file(path);
    const auto size = std::min<std::uint64_t>(begin.size(), file->size());
    file->read(0, std::as_writable_bytes(std::span(begin)).first(size));
  }
  const std::string_view text(begin.data(), begin.size());
  if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6")) return open_npz(path);
  // Byte 8 is '{' in a safetensors file (8 bytes of length, then JSON), but in no HDF5 file.
  if (text[8] == '{' && !text.starts_with("\x89HDF")) return open_safetensors(path);
  return std::make_unique<CheckpointArrays>(path, summarize_checkpoint(path));
}

}  // namespace syncline::io
