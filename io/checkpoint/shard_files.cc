#include "io/checkpoint/shard_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "io/checkpoint/format.h"
#include "io/hdf5/array.h"
#include "syncline/error.h"

namespace syncline::io {

std::vector<std::string> listed_shards(const Hdf5File& file) {
  if (!file.root().has(kStateGroup)) return {};
  const Hdf5Group group = file.root().group(kStateGroup);
  const bool split = group.has_attribute(kShards) || group.has_attribute(std::string(kShards) + "0");
  if (!split) return {};
  std::vector<std::string> names = group.read_names(kShards);
  for (const std::string& name : names)
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
      fail_at(group.location_of(kShards),
              join_text("lists '", name, "', which is not the name of a file in the same folder"));
  return names;
}

ShardFiles::ShardFiles(const Hdf5File& file) {
  // Resolve links: the shards lie beside the index itself, and `file` may be a link such as `latest`.
  std::error_code error;
  directory_ = std::filesystem::canonical(file.root().location().file, error).parent_path().string();
  for (const std::string& name : listed_shards(file)) files_[name];
}

const Hdf5File& ShardFiles::shard(const std::string& name, const Hdf5Location& link) {
  const auto found = files_.find(name);
  if (found == files_.end())
    fail_at(link, join_text("is a link to '", name, "', which is refused: it is not one of the checkpoint's shards"));
  if (found->second.empty()) {
    const std::string path = directory_ + "/" + name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
      fail_at(link,
              join_text("leads to '", path, "', a symbolic link, which is refused because it can point anywhere"));
    found->second.push_back(Hdf5File::open(path));
    found->second.front().refuse_variable_texts();
  }
  return found->second.front();
}

Hdf5Group ShardFiles::open(const Hdf5Group& group, const std::string& name) {
  if (files_.empty()) return open_dataset(group, name);
  const auto [parent, leaf] = split_path(name);
  const Hdf5Group home = group.group(parent);
  const std::optional<Hdf5Group::ExternalLink> link = home.external_link(std::string(leaf));
  const Hdf5Location location = home.location_of(leaf);
  if (!link) fail_at(location, "is not a link to a shard, as each weight in an index must be; the file is damaged");
  if (link->object != location.object)
    fail_at(location,
            join_text("is a link to '", link->object, "', which is refused: it has another name in the shard"));
  const Hdf5Group shard_home =
      shard(link->file, location).root().group(std::string_view(home.location().object).substr(1));
  return open_dataset(shard_home, leaf);
}

}  // namespace syncline::io
