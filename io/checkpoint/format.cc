// Layout: docs/checkpoint_format.md.
#include "io/checkpoint/format.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/version.h"
#include "io/checkpoint/fields.h"
#include "io/files/digest.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

// Format 1 had a CRC-32 per dataset and no digests; format 3 is an index of shards.
constexpr std::int64_t kFormat = 2, kIndexFormat = 3;
// The Keras version of this layout; Keras converts weights of version 1 files.
constexpr const char* kKerasVersion = "2.3.1";
// Keras flips the convolution kernels of some backends, by name; it reads those of other names as they are.
constexpr const char* kBackend = "syncline";
constexpr std::size_t kMostNotes = 60'000;  // bytes; HDF5 limits an attribute to 64 KiB

std::vector<std::string> names_of(const auto& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

void write_weights(const Hdf5Group& group, const std::vector<Weight>& weights, const WriteWeight& write,
                   std::vector<ArrayHeader>& headers) {
  group.write_names("weight_names", names_of(weights));
  for (const Weight& weight : weights) headers.push_back(write(group, weight));
}

void write_layers(const Hdf5Group& root, const std::vector<Layer>& layers, const WriteWeight& write,
                  std::vector<ArrayHeader>& headers) {
  const Hdf5Group group = root.make_group(kWeightsGroup);
  group.write_names("layer_names", names_of(layers));
  group.write_text("backend", kBackend);
  group.write_text("keras_version", kKerasVersion);
  for (const Layer& layer : layers) write_weights(group.make_group(layer.name), layer.weights, write, headers);
}

using Notes = std::map<std::string, std::string>;

std::string text_of_notes(const std::string& path, const Notes& notes) {
  std::string text;
  try {
    text = nlohmann::json(notes).dump();
  } catch (const nlohmann::json::exception& error) {
    fail<ValueError>("save_checkpoint('", path, "'): the notes are not text in UTF-8: ", error.what());
  }
  if (text.size() > kMostNotes)
    fail<ValueError>("save_checkpoint('", path, "'): the notes take ", text.size(), " bytes; keep them within ",
                     kMostNotes);
  return text;
}

// Writes a field as an attribute. Empty optional metrics and notes get no attribute.
struct WriteField {
  const Hdf5Group& group;

  void operator()(const char* name, std::int64_t value) const { group.write_integer(name, value); }
  void operator()(const char* name, std::uint64_t value) const { group.write_unsigned(name, value); }
  void operator()(const char* name, const std::string& value, bool) const { group.write_text(name, value); }
  void operator()(const char* name, const std::optional<double>& value, bool) const {
    if (value) group.write_real(name, *value);
  }
  void operator()(const char* name, const Notes& value, bool) const {
    if (!value.empty()) group.write_text(name, text_of_notes(group.location().file, value));
  }
};

struct ReadField {
  const Hdf5Group& group;

  void operator()(const char* name, std::int64_t& value) const {
    value = group.read_integer(name);
    if (value < 0) fail_at(group.location_of(name), join_text("is ", value, "; the file is damaged"));
  }
  void operator()(const char* name, std::uint64_t& value) const { value = group.read_unsigned(name); }
  void operator()(const char* name, auto& value, bool required) const {
    if (required || group.has_attribute(name)) read(name, value);
  }

  void read(const char* name, std::string& value) const { value = group.read_text(name); }
  void read(const char* name, std::optional<double>& value) const { value = group.read_real(name); }
  void read(const char* name, Notes& value) const {
    try {
      value = nlohmann::json::parse(group.read_text(name)).get<Notes>();
    } catch (const nlohmann::json::exception&) {
      fail_at(group.location_of(name), "is not a JSON object of texts; the file is damaged");
    }
  }
};

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
  check_names(file.root().location().file, spec_of(checkpoint));
  std::vector<ArrayHeader> headers;
  write_layers(file.root(), checkpoint.layers, write, headers);
  if (!checkpoint.optimizer.empty())
    write_weights(file.root().make_group(kOptimizerGroup), checkpoint.optimizer, write, headers);
  const Hdf5Group group = file.root().make_group(kStateGroup);
  group.write_integer(kFormatName, shards == nullptr ? kFormat : kIndexFormat);
  for_each_state_field(checkpoint.state, WriteField{group});
  CheckpointHead head = checkpoint;
  if (head.version.empty()) head.version = version();
  for_each_head_field(head, WriteField{group});
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
  for_each_state_field(state, WriteField{group});
  group.write_integer(kShard, number);
  group.write_text(kRootDigest, root_digest(std::move(headers)));
}

TrainingState read_state(const Hdf5Group& group) {
  const std::int64_t format = group.read_integer(kFormatName);
  if (format < 1 || format > kIndexFormat)
    fail_at(group.location(), join_text("has format ", format, ", but this program reads formats 1 to ", kIndexFormat,
                                        "; use the version of Syncline that wrote the file"));
  TrainingState state;
  for_each_state_field(state, ReadField{group});
  return state;
}

CheckpointHead read_head(const Hdf5Group& group) {
  CheckpointHead head;
  head.state = read_state(group);
  for_each_head_field(head, ReadField{group});
  return head;
}

void verify_root(const Hdf5Group& root, const std::vector<ArrayHeader>& headers) {
  if (!root.has(kStateGroup)) return;
  const Hdf5Group group = root.group(kStateGroup);
  if (group.read_integer(kFormatName) == 1) return;
  for (const ArrayHeader& header : headers)
    if (header.digest.empty())
      fail_at({root.location().file, header.path}, "has lost its digest: the dataset was damaged or replaced");
  const std::string found = root_digest(headers), written = group.read_text(kRootDigest);
  if (found != written)
    fail_at(group.location_of(kRootDigest),
            join_text("the datasets are not those that were written: their digest is ", found, ", but ", written,
                      " was written; use another checkpoint"));
}

}  // namespace syncline::io
