// Layout: docs/checkpoint_format.md.
#include "io/checkpoint_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "io/digest.h"

namespace syncline::io {
namespace {

// Format 1 had a CRC-32 for each dataset and no digests; format 3 is an index of shards.
constexpr std::int64_t kFormat = 2, kIndexFormat = 3;
// The version whose layout this is; Keras converts weights of version 1 files.
constexpr const char* kKerasVersion = "2.3.1";
// Keras flips convolution kernels of the backends it knows to be different; any other name means "as they are".
constexpr const char* kBackend = "syncline";
constexpr std::size_t kMostNotes = 60'000;  // bytes; an attribute holds 64 KiB

struct CountField {
  const char* name;
  std::int64_t TrainingState::*member;
};
constexpr std::array kCounts{
    CountField{"epoch", &TrainingState::epoch},
    CountField{"step", &TrainingState::step},
    CountField{"global_step", &TrainingState::global_step},
    CountField{"batch", &TrainingState::batch},
    CountField{"samples", &TrainingState::samples},
};

void check_name(const std::string& path, const std::string& name) {
  bool bad = name.empty() || name.find('\0') != std::string::npos;
  for (std::size_t begin = 0; !bad && begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    bad = part.empty() || part == "." || part == "..";
    begin = end + 1;
  }
  if (bad) {
    std::string shown = name;
    std::replace(shown.begin(), shown.end(), '\0', '?');  // a message ends at a NUL
    fail<ValueError>("save_checkpoint('", path, "'): '", shown,
                     "' is no name for a layer or weight: use parts divided by single slashes");
  }
}

std::vector<std::string> names_of(const std::string& path, const auto& items) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const auto& item : items) {
    check_name(path, item.name);
    if (!seen.insert(item.name).second)
      fail<ValueError>("save_checkpoint('", path, "'): the name '", item.name, "' occurs twice; make it unique");
    names.push_back(item.name);
  }
  return names;
}

void write_weights(const Hdf5Group& group, const std::vector<Weight>& weights, const WriteWeight& write,
                   std::vector<ArrayHeader>& headers) {
  group.write_names("weight_names", names_of(group.place().file, weights));
  for (const Weight& weight : weights) headers.push_back(write(group, weight));
}

void write_layers(const Hdf5Group& root, const std::vector<Layer>& layers, const WriteWeight& write,
                  std::vector<ArrayHeader>& headers) {
  const Hdf5Group group = root.make_group(kWeightsGroup);
  group.write_names("layer_names", names_of(group.place().file, layers));
  group.write_text("backend", kBackend);
  group.write_text("keras_version", kKerasVersion);
  for (const Layer& layer : layers) write_weights(group.make_group(layer.name), layer.weights, write, headers);
}

std::string text_of_notes(const std::string& path, const std::map<std::string, std::string>& notes) {
  std::string text;
  try {
    text = nlohmann::json(notes).dump();
  } catch (const nlohmann::json::exception& error) {
    fail<ValueError>("save_checkpoint('", path, "'): the notes are no text in UTF-8: ", error.what());
  }
  if (text.size() > kMostNotes)
    fail<ValueError>("save_checkpoint('", path, "'): the notes take ", text.size(), " bytes; keep them within ",
                     kMostNotes);
  return text;
}

void write_state(const Hdf5Group& group, const TrainingState& state) {
  group.write_text(kVersion, SYNCLINE_VERSION);
  for (const CountField& field : kCounts) group.write_integer(field.name, state.*field.member);
  group.write_unsigned("seed", state.seed);
  group.write_unsigned("random_step", state.random_step);
}

// What a checkpoint has beside its weights and its state.
void write_description(const Hdf5Group& group, const Checkpoint& checkpoint) {
  group.write_text("model", checkpoint.model);
  if (checkpoint.metric) group.write_real(kMetric, *checkpoint.metric);
  if (!checkpoint.notes.empty()) group.write_text(kNotes, text_of_notes(group.place().file, checkpoint.notes));
}

}  // namespace

std::string root_digest(std::vector<ArrayHeader> headers) {
  std::sort(headers.begin(), headers.end(), [](const ArrayHeader& a, const ArrayHeader& b) { return a.path < b.path; });
  std::string text;
  for (const ArrayHeader& header : headers)
    text += join_text(header.path, " ", header.dtype, " ", header.shape, " ", header.digest, "\n");
  return content_digest(std::as_bytes(std::span(text)));
}

void write_checkpoint(const Hdf5File& file, const Checkpoint& checkpoint, const WriteWeight& write,
                      const ShardNames* shards) {
  std::vector<ArrayHeader> headers;
  write_layers(file.root(), checkpoint.layers, write, headers);
  if (!checkpoint.optimizer.empty())
    write_weights(file.root().make_group(kOptimizerGroup), checkpoint.optimizer, write, headers);
  const Hdf5Group group = file.root().make_group(kStateGroup);
  group.write_integer(kFormatName, shards == nullptr ? kFormat : kIndexFormat);
  write_state(group, checkpoint.state);
  write_description(group, checkpoint);
  if (shards != nullptr) {
    group.write_names(kShards, shards->files);
    group.write_integer(kGeneration, shards->generation);
  }
  group.write_text(kRootDigest, root_digest(std::move(headers)));
}

void write_shard(const Hdf5File& file, const TrainingState& state, int number,
                 const std::function<void(std::vector<ArrayHeader>&)>& write) {
  std::vector<ArrayHeader> headers;
  write(headers);
  const Hdf5Group group = file.root().make_group(kStateGroup);
  group.write_integer(kFormatName, kIndexFormat);
  write_state(group, state);
  group.write_integer(kShard, number);
  group.write_text(kRootDigest, root_digest(std::move(headers)));
}

std::map<std::string, std::string> read_notes(const Hdf5Group& group) {
  try {
    return nlohmann::json::parse(group.read_text(kNotes)).get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail_at(group.place_of(kNotes), "is no JSON of texts by name; the file is damaged");
  }
}

TrainingState read_state(const Hdf5Group& group) {
  const std::int64_t format = group.read_integer(kFormatName);
  if (format < 1 || format > kIndexFormat)
    fail_at(group.place(), join_text("has format ", format, ", this program reads 1 to ", kIndexFormat,
                                     "; use the version of Syncline that wrote the file"));
  TrainingState state;
  for (const CountField& field : kCounts) {
    state.*field.member = group.read_integer(field.name);
    if (state.*field.member < 0)
      fail_at(group.place_of(field.name), join_text("is ", state.*field.member, "; the file is damaged"));
  }
  state.seed = group.read_unsigned("seed");
  state.random_step = group.read_unsigned("random_step");
  return state;
}

void verify_root(const Hdf5Group& root, const std::vector<ArrayHeader>& headers) {
  if (!root.has(kStateGroup)) return;
  const Hdf5Group group = root.group(kStateGroup);
  if (group.read_integer(kFormatName) == 1) return;
  for (const ArrayHeader& header : headers)
    if (header.digest.empty())
      fail_at({root.place().file, header.path}, "has lost its digest: the dataset was damaged or replaced");
  const std::string found = root_digest(headers), written = group.read_text(kRootDigest);
  if (found != written)
    fail_at(group.place_of(kRootDigest), join_text("the datasets are not those that were written: their digest is ",
                                                   found, ", ", written, " was written; use another checkpoint"));
}

}  // namespace syncline::io
