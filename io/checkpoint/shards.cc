#include "syncline/checkpoint/shards.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "io/checkpoint/format.h"
#include "io/files/atomic_file.h"
#include "io/hdf5/array.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline::io {
namespace {

constexpr std::string_view kSuffix = ".h5", kInfix = ".shard-";

std::string stem_of(std::string_view path) {
  return std::string(path.ends_with(kSuffix) ? path.substr(0, path.size() - kSuffix.size()) : path);
}

std::string name_of_path(const std::string& path) { return std::filesystem::path(path).filename().string(); }

ShardNames names_at(const std::string& path, int count, std::int64_t generation) {
  ShardNames names{{}, generation};
  for (int i = 0; i < count; ++i)
    names.files.push_back(join_text(name_of_path(stem_of(path)), kInfix, i, "-of-", count, "-", generation, kSuffix));
  return names;
}

// The index at `path` keeps its shards until a new index replaces it, so new shards need other names. All ranks compute
// the same generation, because the index is replaced only after all ranks have written.
std::int64_t next_generation(const std::string& path) {
  try {
    const Hdf5File file = Hdf5File::open(path);
    const Hdf5Group group = file.root().group(kStateGroup);
    return group.has_attribute(kGeneration) ? (group.read_integer(kGeneration) + 1) & INT32_MAX : 0;
  } catch (const IoError&) {
    return 0;
  }
}

// Calls visit(group, weight) for each weight, with the path of its group.
template <class Visit>
void for_each_weight(const Checkpoint& checkpoint, Visit visit) {
  for (const Layer& layer : checkpoint.layers)
    for (const Weight& weight : layer.weights) visit(join_text(kWeightsGroup, "/", layer.name), weight);
  for (const Weight& weight : checkpoint.optimizer) visit(std::string(kOptimizerGroup), weight);
}

// The same for each weight of a shard.
template <class Visit>
void for_each_weight(const Checkpoint& checkpoint, Shard shard, Visit visit) {
  const std::vector<bool> own = weights_in(shard, checkpoint);
  std::size_t at = 0;
  for_each_weight(checkpoint, [&](const std::string& group, const Weight& weight) {
    if (own[at++]) visit(group, weight);
  });
}

void check_shard(Shard shard) {
  if (shard.count < 1 || shard.number < 0 || shard.number >= shard.count)
    fail<ValueError>("checkpoint: there is no shard ", shard.number, " of ", shard.count);
}

// Checks that this save wrote the shard; returns the headers of its datasets by path.
std::map<std::string, ArrayHeader> read_shard(const std::string& path, const Checkpoint& checkpoint, Shard shard) {
  const Hdf5File file = Hdf5File::open(path);
  const Hdf5Group group = file.root().group(kStateGroup);
  if (group.read_integer(kShard) != shard.number || read_state(group) != checkpoint.state)
    fail_at(file.root().location(), "belongs to another step; save the checkpoint again");
  std::map<std::string, ArrayHeader> headers;
  std::vector<ArrayHeader> listed;
  for_each_weight(checkpoint, shard, [&](const std::string& name, const Weight& weight) {
    const ArrayHeader header = header_of(open_dataset(file.root().group(name), weight.name));
    if (header.dtype != weight.value.dtype() || header.shape != weight.value.shape())
      fail_at({path, header.path}, "has another dtype or shape than in the checkpoint; save the checkpoint again");
    headers.emplace(header.path, header);
    listed.push_back(header);
  });
  verify_root(file.root(), listed);
  return headers;
}

void remove_others(const std::string& path, const std::vector<std::string>& keep) {
  for (const std::string& file : shard_files(path)) {
    if (std::find(keep.begin(), keep.end(), name_of_path(file)) != keep.end()) continue;
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      fail<IoError>("checkpoint '", path, "' is saved, but its old shard '", file,
                    "' cannot be removed: ", std::strerror(errno));
  }
}

}  // namespace

std::string index_of_shard(std::string_view name) {
  const std::size_t infix = name.rfind(kInfix);
  if (infix == std::string_view::npos || infix == 0 || !name.ends_with(kSuffix)) return {};
  return join_text(name.substr(0, infix), kSuffix);
}

std::vector<std::string> shard_files(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;  // an unlistable directory has no shards
  const std::string wanted = name_of_path(stem_of(path)) + std::string(kSuffix), directory = directory_of(path);
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (index_of_shard(name) == wanted) found.push_back(directory + "/" + name);
  }
  return found;
}

Array absent_array(DType dtype, Shape shape) { return Array::borrow(dtype, std::move(shape), nullptr); }

std::vector<bool> weights_in(Shard shard, const Checkpoint& checkpoint) {
  check_shard(shard);
  double bytes = 0, before = 0;
  for_each_weight(checkpoint, [&](const auto&, const Weight& w) { bytes += static_cast<double>(w.value.bytes()); });
  std::vector<bool> own;
  for_each_weight(checkpoint, [&](const auto&, const Weight& weight) {
    const auto size = static_cast<double>(weight.value.bytes());
    const auto owner = bytes == 0 ? 0 : static_cast<int>((before + size / 2) / bytes * shard.count);
    before += size;
    own.push_back(std::min(owner, shard.count - 1) == shard.number);
  });
  return own;
}

std::string save_shard(const std::string& path, const Checkpoint& checkpoint, Shard shard) {
  const timeline::Span traced("file", "save a shard of a checkpoint");
  check_shard(shard);
  const Hdf5Session session;
  const ShardNames names = names_at(path, shard.count, next_generation(path));
  std::string own = directory_of(path) + "/" + names.files[static_cast<std::size_t>(shard.number)];
  Hdf5File file = Hdf5File::create(own);
  write_shard(file, checkpoint.state, shard.number, [&](std::vector<ArrayHeader>& headers) {
    for_each_weight(checkpoint, shard, [&](const std::string& group, const Weight& weight) {
      headers.push_back(write_array(file, file.root().make_group(group), weight.name, weight.value));
    });
  });
  file.commit();
  return own;
}

void save_index(const std::string& path, const Checkpoint& checkpoint, int count) {
  const timeline::Span traced("file", "save the index of a checkpoint");
  check_shard({0, count});
  const Hdf5Session session;
  const ShardNames names = names_at(path, count, next_generation(path));
  std::map<std::string, std::pair<ArrayHeader, std::string>> places;
  for (int i = 0; i < count; ++i) {
    const std::string& name = names.files[static_cast<std::size_t>(i)];
    for (auto& [object, header] : read_shard(directory_of(path) + "/" + name, checkpoint, {i, count}))
      places.emplace(object, std::pair(std::move(header), name));
  }
  Hdf5File file = Hdf5File::create(path);
  const auto link = [&](const Hdf5Group& group, const Weight& weight) {
    const auto& [header, name] = places.at(group.location_of(weight.name).object);
    const auto [parent, leaf] = split_path(weight.name);
    group.make_group(parent).make_external_link(std::string(leaf), {name, header.path});
    return header;
  };
  write_checkpoint(file, checkpoint, link, &names);
  file.commit();
  remove_others(path, names.files);
}

}  // namespace syncline::io
