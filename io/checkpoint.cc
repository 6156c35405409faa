// Layout: docs/checkpoint_format.md.
#include "io/checkpoint.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/timeline.h"
#include "io/array_reader.h"
#include "io/digest.h"
#include "io/hdf5_array.h"
#include "io/hdf5_file.h"

namespace syncline::io {
namespace {

// Format 1 had a CRC-32 for each dataset and no digests.
constexpr std::int64_t kFormat = 2;
constexpr const char* kRootDigest = "root_digest";
constexpr const char* kMetric = "metric";
constexpr const char* kVersion = "version";
constexpr const char* kNotes = "notes";
constexpr std::size_t kMostNotes = 60'000;  // bytes; an attribute holds 64 KiB
constexpr const char* kWeightsGroup = "model_weights";
constexpr const char* kOptimizerGroup = "optimizer_weights";
constexpr const char* kStateGroup = "syncline";
// The version whose layout this is; Keras converts weights of version 1 files.
constexpr const char* kKerasVersion = "2.3.1";
// Keras flips convolution kernels of the backends it knows to be different; any other name means "as they are".
constexpr const char* kBackend = "syncline";

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

// Of what the file lists: paths, dtypes, shapes and digests of all its datasets, sorted, a line each. It ties the
// datasets to each other: one that is missing, or that is another file's, is found like a flipped bit.
std::string root_digest(std::vector<ArrayHeader> headers) {
  std::sort(headers.begin(), headers.end(), [](const ArrayHeader& a, const ArrayHeader& b) { return a.path < b.path; });
  std::string text;
  for (const ArrayHeader& header : headers)
    text += join_text(header.path, " ", header.dtype, " ", header.shape, " ", header.digest, "\n");
  return content_digest(std::as_bytes(std::span(text)));
}

void write_weights(Hdf5File& file, const Hdf5Group& group, const std::vector<Weight>& weights,
                   std::vector<ArrayHeader>& headers) {
  group.write_names("weight_names", names_of(group.place().file, weights));
  for (const Weight& weight : weights) headers.push_back(write_array(file, group, weight.name, weight.value));
}

void write_layers(Hdf5File& file, const std::vector<Layer>& layers, std::vector<ArrayHeader>& headers) {
  const Hdf5Group group = file.root().make_group(kWeightsGroup);
  group.write_names("layer_names", names_of(group.place().file, layers));
  group.write_text("backend", kBackend);
  group.write_text("keras_version", kKerasVersion);
  for (const Layer& layer : layers) write_weights(file, group.make_group(layer.name), layer.weights, headers);
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

std::map<std::string, std::string> read_notes(const Hdf5Group& group) {
  try {
    return nlohmann::json::parse(group.read_text(kNotes)).get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail_at(group.place_of(kNotes), "is no JSON of texts by name; the file is damaged");
  }
}

void write_state(const Hdf5Group& group, const Checkpoint& checkpoint, const std::string& root) {
  group.write_integer("format", kFormat);
  group.write_text(kVersion, SYNCLINE_VERSION);
  group.write_text("model", checkpoint.model);
  for (const CountField& field : kCounts) group.write_integer(field.name, checkpoint.state.*field.member);
  group.write_unsigned("seed", checkpoint.state.seed);
  group.write_unsigned("random_step", checkpoint.state.random_step);
  if (checkpoint.metric) group.write_real(kMetric, *checkpoint.metric);
  if (!checkpoint.notes.empty()) group.write_text(kNotes, text_of_notes(group.place().file, checkpoint.notes));
  group.write_text(kRootDigest, root);
}

// Names read from a file; a list that repeats one could make us load the same array a million times.
std::vector<std::string> read_unique_names(const Hdf5Group& group, const std::string& attribute) {
  std::vector<std::string> names = group.read_names(attribute);
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    if (name.empty() || !seen.insert(name).second)
      fail_at(group.place_of(attribute), join_text("lists '", name, "' twice or is empty; the file is damaged"));
  return names;
}

// Calls read(group, name) for each weight listed in `group`.
template <class Read>
auto read_weights(const Hdf5Group& group, Read read) {
  std::vector<decltype(read(group, std::string()))> weights;
  for (const std::string& name : read_unique_names(group, "weight_names")) weights.push_back(read(group, name));
  return weights;
}

// A model file has its weights in a group, a file of save_weights at the root.
Hdf5Group weights_group(const Hdf5Group& root) { return root.group(root.has(kWeightsGroup) ? kWeightsGroup : ""); }

template <class LayerType, class Read>
std::vector<LayerType> read_layers(const Hdf5Group& root, Read read) {
  const Hdf5Group group = weights_group(root);
  std::vector<LayerType> layers;
  for (const std::string& name : read_unique_names(group, "layer_names"))
    layers.push_back({name, read_weights(group.group(name), read)});
  return layers;
}

template <class Read>
auto read_optimizer(const Hdf5Group& root, Read read) {
  using Weights = decltype(read_weights(root, read));
  return root.has(kOptimizerGroup) ? read_weights(root.group(kOptimizerGroup), read) : Weights();
}

TrainingState read_state(const Hdf5Group& group) {
  const std::int64_t format = group.read_integer("format");
  if (format < 1 || format > kFormat)
    fail_at(group.place(), join_text("has format ", format, ", this program reads 1 to ", kFormat,
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

// Fills what Checkpoint and CheckpointSummary have in common.
void read_state_into(const Hdf5Group& root, auto& target) {
  target.has_state = root.has(kStateGroup);
  if (!target.has_state) return;
  const Hdf5Group group = root.group(kStateGroup);
  target.state = read_state(group);
  target.model = group.read_text("model");
  if (group.has_attribute(kVersion)) target.version = group.read_text(kVersion);
  if (group.has_attribute(kMetric)) target.metric = group.read_real(kMetric);
  if (group.has_attribute(kNotes)) target.notes = read_notes(group);
}

// Whether the datasets listed are those that were written. Whether their values are, read_array has checked.
void verify_root(const Hdf5Group& root, const std::vector<ArrayHeader>& headers) {
  if (!root.has(kStateGroup)) return;
  const Hdf5Group group = root.group(kStateGroup);
  if (group.read_integer("format") == 1) return;
  for (const ArrayHeader& header : headers)
    if (header.digest.empty())
      fail_at({root.place().file, header.path}, "has lost its digest: the dataset was damaged or replaced");
  const std::string found = root_digest(headers), written = group.read_text(kRootDigest);
  if (found != written)
    fail_at(group.place_of(kRootDigest), join_text("the datasets are not those that were written: their digest is ",
                                                   found, ", ", written, " was written; use another checkpoint"));
}

// Notes what `action` throws, so that reading goes on.
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

void verify_contents(const Hdf5Group& root, VerifyReport& report) {
  std::vector<ArrayHeader> headers;
  const auto read = [&](const Hdf5Group& group, const std::string& name) {
    note_problems(report, [&] {
      StoredArray stored = read_array(group, name);
      ++report.arrays;
      report.bytes += static_cast<std::int64_t>(stored.value.bytes());
      headers.push_back(std::move(stored.header));
    });
    return 0;
  };
  CheckpointSummary summary;
  note_problems(report, [&] { read_state_into(root, summary); });
  note_problems(report, [&] {
    const Hdf5Group group = weights_group(root);
    for (const std::string& name : read_unique_names(group, "layer_names"))
      note_problems(report, [&] { read_weights(group.group(name), read); });
  });
  note_problems(report, [&] { read_optimizer(root, read); });
  report.has_digests = std::all_of(headers.begin(), headers.end(), [](const auto& h) { return !h.digest.empty(); });
  // With a dataset missing from the list the root digest would only say that again.
  if (report.problems.empty()) note_problems(report, [&] { verify_root(root, headers); });
}

WeightSpec spec_of_weight(const Weight& weight) { return {weight.name, weight.value.dtype(), weight.value.shape()}; }

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const timeline::Span traced("file", "save a checkpoint");
  const Hdf5Session session;
  Hdf5File file = Hdf5File::create(path);
  std::vector<ArrayHeader> headers;
  write_layers(file, checkpoint.layers, headers);
  if (!checkpoint.optimizer.empty())
    write_weights(file, file.root().make_group(kOptimizerGroup), checkpoint.optimizer, headers);
  write_state(file.root().make_group(kStateGroup), checkpoint, root_digest(std::move(headers)));
  file.commit();
}

Checkpoint load_checkpoint(const std::string& path) {
  const timeline::Span traced("file", "load a checkpoint");
  const Hdf5Session session;
  const Hdf5File file = Hdf5File::open(path);
  std::vector<ArrayHeader> headers;
  ArrayReader reader;
  const auto read = [&](const Hdf5Group& group, const std::string& name) {
    StoredArray stored = reader.begin(group, name);
    headers.push_back(std::move(stored.header));
    return Weight{name, std::move(stored.value)};
  };
  Checkpoint checkpoint;
  read_state_into(file.root(), checkpoint);
  checkpoint.layers = read_layers<Layer>(file.root(), read);
  checkpoint.optimizer = read_optimizer(file.root(), read);
  reader.finish();
  verify_root(file.root(), headers);
  return checkpoint;
}

CheckpointSummary summarize_checkpoint(const std::string& path) {
  const Hdf5Session session;
  const Hdf5File file = Hdf5File::open(path);
  std::vector<ArrayHeader> headers;
  const auto read = [&](const Hdf5Group& group, const std::string& name) {
    headers.push_back(header_of(open_dataset(group, name)));
    return WeightSpec{name, headers.back().dtype, headers.back().shape};
  };
  CheckpointSummary summary;
  read_state_into(file.root(), summary);
  summary.spec.layers = read_layers<LayerSpec>(file.root(), read);
  summary.spec.optimizer = read_optimizer(file.root(), read);
  verify_root(file.root(), headers);
  return summary;
}

VerifyReport verify_checkpoint(const std::string& path) {
  const Hdf5Session session;
  VerifyReport report;
  note_problems(report, [&] { verify_contents(Hdf5File::open(path).root(), report); });
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
