#include "syncline/checkpoint/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "io/checkpoint/shard_files.h"
#include "io/files/atomic_file.h"
#include "io/hdf5/file.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::string_view kPrefix = "step-", kSuffix = ".h5", kTemporary = ".tmp";
constexpr const char* kLatest = "latest";
constexpr const char* kBest = "best";
constexpr std::size_t kDigits = 10;  // names sort like steps below 10^10

std::string name_of_step(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return join_text(kPrefix, digits, kSuffix);
}

// The step in the name of a checkpoint; empty for other names.
std::optional<std::int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  std::int64_t step = -1;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stop != end || step < 0 || name_of_step(step) != name) return std::nullopt;
  return step;
}

// The names in a directory; none if it is missing.
std::vector<std::string> names_in(const std::string& directory) {
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(::opendir(directory.c_str()), close);
  if (stream == nullptr && errno == ENOENT) return {};
  if (stream == nullptr) fail<IoError>("checkpoint folder '", directory, "': cannot list it: ", std::strerror(errno));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* item = ::readdir(stream.get())) names.emplace_back(item->d_name);
  if (errno != 0) fail<IoError>("checkpoint folder '", directory, "': cannot list it: ", std::strerror(errno));
  return names;
}

std::string target_of(const std::string& link) {
  std::array<char, PATH_MAX> target;
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

// Removes the temporaries of killed saves: no later save writes to the same path.
void remove_leftovers(const std::string& directory) {
  for (const std::string& name : names_in(directory)) {
    if (!name.ends_with(kTemporary)) continue;
    const std::string saved = name.substr(0, name.size() - kTemporary.size());
    if (step_of_name(saved)) remove_abandoned_temporary(directory + "/" + saved);
  }
}

// Empty for a file without a metric, or with NaN. Throws IoError if the file cannot be read or is Keras's.
std::optional<double> metric_of(const std::string& path) {
  const std::optional<double> metric = summarize_checkpoint(path, KerasFiles::kRefused).metric;
  return metric && std::isnan(*metric) ? std::nullopt : metric;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The shards that the index at `path` lists: none without an index, unknown if it cannot be read.
std::optional<std::vector<std::string>> shards_listed_at(const std::string& path) {
  try {
    const Hdf5Session session;
    Hdf5File file = Hdf5File::open(path);
    file.refuse_variable_texts();
    return listed_shards(file);
  } catch (const UnreadableError&) {
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::vector<std::string>();
  } catch (const IoError&) {
    // Damaged: load() reports it.
  }
  return std::nullopt;
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string directory, FolderOptions options)
    : directory_(std::move(directory)), options_(options) {
  if (options.keep_last < 1 || options.keep_best < 0)
    fail<ValueError>("CheckpointFolder('", directory_, "'): keep_last is ", options.keep_last, " and keep_best ",
                     options.keep_best, "; keep_last must be 1 or more, keep_best 0 or more");
}

std::string CheckpointFolder::save(const Checkpoint& checkpoint) const {
  return put(checkpoint, [&](const std::string& path) {
    save_checkpoint(path, checkpoint);
    for (const std::string& shard : shard_files(path)) remove(shard.substr(directory_.size() + 1));
  });
}

std::string CheckpointFolder::save_shard(const Checkpoint& checkpoint, Shard shard) const {
  make_directory_durably(directory_);
  return io::save_shard(path_of(name_of_step(checkpoint.state.global_step)), checkpoint, shard);
}

std::string CheckpointFolder::save_index(const Checkpoint& checkpoint, int count) const {
  try {
    const std::string path = put(checkpoint, [&](const std::string& to) { io::save_index(to, checkpoint, count); });
    discard_shards();
    return path;
  } catch (const SurplusError&) {
    discard_shards();
    throw;
  }
}

std::string CheckpointFolder::put(const Checkpoint& checkpoint,
                                  const std::function<void(const std::string& path)>& write) const {
  make_directory_durably(directory_);
  remove_leftovers(directory_);
  const std::string name = name_of_step(checkpoint.state.global_step);
  write_with_room([&] { write(path_of(name)); });
  make_newest(name);
  write_with_room([&] { write_link_durably(path_of(kLatest), name); });
  const std::vector<Entry> files = entries();
  const Ranking ranking = by_metric(files);
  if (!ranking.best.empty() && target_of(path_of(kBest)) != ranking.best[0])
    write_with_room([&] { write_link_durably(path_of(kBest), ranking.best[0]); });
  remove_surplus(files, ranking);
  return path_of(name);
}

// The file's time decides its age, but a clock may have been set back.
void CheckpointFolder::make_newest(const std::string& name) const {
  const std::vector<Entry> files = entries();
  if (files.empty() || files.front().name == name) return;
  constexpr std::int64_t kSecond = 1'000'000'000, kTick = 2 * kSecond;  // every file system tells such times apart
  const std::int64_t at = files.front().saved + kTick;
  const std::array<timespec, 2> times{{{0, UTIME_OMIT}, {at / kSecond, at % kSecond}}};
  // Some file systems set no times. `latest` leads to the file in any case.
  static_cast<void>(::utimensat(AT_FDCWD, path_of(name).c_str(), times.data(), 0));
}

void CheckpointFolder::remove(const std::string& name) const {
  if (::unlink(path_of(name).c_str()) != 0 && errno != ENOENT)
    fail<IoError>("checkpoint folder '", directory_, "': cannot remove '", name, "': ", std::strerror(errno));
}

void CheckpointFolder::remove_with_shards(const std::string& name) const {
  remove(name);
  for (const std::string& shard : shard_files(path_of(name))) remove(shard.substr(directory_.size() + 1));
}

// Retries while the disk is full and an old checkpoint can be removed.
void CheckpointFolder::write_with_room(const std::function<void()>& write) const {
  for (;;) {
    try {
      return write();
    } catch (const DiskFullError&) {
      if (!make_room()) throw;
    }
  }
}

bool CheckpointFolder::make_room() const {
  if (latest().empty() || !verify_checkpoint(path_of(latest()), KerasFiles::kRefused).problems.empty()) return false;
  const std::vector<Entry> files = entries();
  const Ranking ranking = by_metric(files);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    const bool best = !ranking.best.empty() && file->name == ranking.best[0];
    if (best || file->name == latest() || file->name == files.front().name || among(ranking.unreadable, file->name))
      continue;
    try {
      remove_with_shards(file->name);
      return true;
    } catch (const IoError&) {
      // Another one may be removable.
    }
  }
  return false;
}

bool CheckpointFolder::is_saving() const {
  const std::vector<std::string> names = names_in(directory_);
  return std::any_of(names.begin(), names.end(), [](std::string_view name) {
    if (!name.ends_with(kTemporary)) return false;
    const std::string_view saved = name.substr(0, name.size() - kTemporary.size());
    return step_of_name(saved) || step_of_name(index_of_shard(saved));
  });
}

// Removes shards that no index lists. Call it only when every started save has written its index.
void CheckpointFolder::discard_shards() const {
  std::map<std::string, std::optional<std::vector<std::string>>> listed;  // by the name of the index
  for (const std::string& name : names_in(directory_)) {
    const bool temporary = name.ends_with(kTemporary);
    const std::string shard = name.substr(0, name.size() - (temporary ? kTemporary.size() : 0));
    const std::string index = index_of_shard(shard);
    if (!step_of_name(index)) continue;
    if (temporary) {
      remove_abandoned_temporary(path_of(shard));
      continue;
    }
    if (!listed.contains(index)) listed[index] = shards_listed_at(path_of(index));
    if (listed[index] && !among(*listed[index], name)) remove(name);
  }
}

// Newest first, by modification time: after a return to an earlier checkpoint, higher steps may be older.
std::vector<CheckpointFolder::Entry> CheckpointFolder::entries() const {
  std::vector<Entry> found;
  for (std::string& name : names_in(directory_)) {
    const std::optional<std::int64_t> step = step_of_name(name);
    struct stat status {};
    if (!step || ::stat(path_of(name).c_str(), &status) != 0) continue;
    found.push_back({std::move(name), *step, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec});
  }
  std::sort(found.begin(), found.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.saved, a.step) > std::tie(b.saved, b.step); });
  return found;
}

// The keep_best best checkpoints, best first, newest first among equals; and those whose metric is unreadable.
CheckpointFolder::Ranking CheckpointFolder::by_metric(const std::vector<Entry>& entries) const {
  Ranking ranking;
  if (options_.keep_best == 0) return ranking;
  std::vector<std::pair<double, std::string>> rated;
  for (const Entry& entry : entries) {
    try {
      if (const std::optional<double> metric = metric_of(path_of(entry.name)))
        rated.emplace_back(options_.higher_is_better ? -*metric : *metric, entry.name);
    } catch (const UnreadableError&) {
      ranking.unreadable.push_back(entry.name);
    } catch (const IoError&) {
      // Damaged: load() reports it.
    }
  }
  std::stable_sort(rated.begin(), rated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  rated.resize(std::min(rated.size(), static_cast<std::size_t>(options_.keep_best)));
  for (auto& [value, name] : rated) ranking.best.push_back(std::move(name));
  return ranking;
}

std::string CheckpointFolder::latest() const {
  const std::string target = target_of(path_of(kLatest));
  return step_of_name(target) ? target : std::string();
}

void CheckpointFolder::remove_surplus(const std::vector<Entry>& entries, const Ranking& ranking) const {
  const std::string latest_name = latest();
  std::string problem;
  for (std::size_t i = static_cast<std::size_t>(options_.keep_last); i < entries.size(); ++i) {
    const std::string& name = entries[i].name;
    if (name == latest_name || among(ranking.best, name) || among(ranking.unreadable, name)) continue;
    try {
      remove_with_shards(name);
    } catch (const IoError& error) {
      problem = error.what();
    }
  }
  if (!problem.empty())
    throw SurplusError(problem + "; the new checkpoint '" + latest_name + "' is saved", path_of(latest_name));
}

// Why the link `latest` names no checkpoint; empty if it names one, or is missing.
std::string CheckpointFolder::lost_latest() const {
  std::error_code missing;
  const std::filesystem::path link = path_of(kLatest);
  const std::filesystem::file_type kind = std::filesystem::symlink_status(link, missing).type();
  if (kind == std::filesystem::file_type::not_found || !latest().empty()) return {};
  if (kind != std::filesystem::file_type::symlink) return "'latest' is not a symbolic link";
  return join_text("'latest' points at '", target_of(link), "', which is not a checkpoint of this folder");
}

std::optional<FolderLoad> CheckpointFolder::load() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.push_back(entry.name);
  const std::string latest_name = latest(), lost = lost_latest();
  std::string reason = lost.empty() ? "there is no link 'latest' to a checkpoint" : lost;
  if (!latest_name.empty()) {
    std::erase(names, latest_name);
    names.insert(names.begin(), latest_name);
  }
  if (names.empty() && !lost.empty())
    fail<IoError>(
        "checkpoint folder '", directory_, "': ", lost,
        ", and there is no other checkpoint; give the path of the checkpoint to resume, or remove 'latest' to start "
        "from the beginning");
  if (names.empty()) return std::nullopt;
  for (const std::string& name : names) {
    try {
      FolderLoad loaded{load_checkpoint(path_of(name), KerasFiles::kRefused), path_of(name), {}};
      if (name != latest_name)
        loaded.warning = join_text("checkpoint folder '", directory_, "': going back to '", name,
                                   "', the newest undamaged checkpoint, because ", reason);
      return loaded;
    } catch (const IoError& error) {
      if (name == latest_name) reason = error.what();
    }
  }
  fail<IoError>("checkpoint folder '", directory_, "': all of its checkpoints (", names.size(),
                ") are damaged: ", reason, "; check them with syncline verify");
}

}  // namespace syncline::io
