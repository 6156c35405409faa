// Checks what a save needs from a file system: durable replacement of a file, a symbolic link, locks, and room.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>

#include "io/files/atomic_file.h"
#include "tools/doctor/checks.h"

namespace syncline::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "folder";
constexpr std::uint64_t kLittleRoom = std::uint64_t{1} << 30;

struct FileSystem {
  std::uint32_t magic;
  const char* name;
  const char* remark;  // nullptr: none
};

constexpr const char* kGone = "its files disappear with the node or container; keep checkpoints elsewhere";

// Numbers from statfs(2), and from the headers of file systems that Linux does not ship.
constexpr std::array kFileSystems{
    FileSystem{0xEF53, "ext4", nullptr},      FileSystem{0x58465342, "xfs", nullptr},
    FileSystem{0x9123683E, "btrfs", nullptr}, FileSystem{0x2FC12FC1, "zfs", nullptr},
    FileSystem{0x6969, "nfs", nullptr},       FileSystem{0x0BD00BD0, "lustre", nullptr},
    FileSystem{0x47504653, "gpfs", nullptr},  FileSystem{0x19830326, "beegfs", nullptr},
    FileSystem{0x00C36400, "ceph", nullptr},  FileSystem{0xFF534D42, "cifs", nullptr},
    FileSystem{0xFE534D42, "smb2", nullptr},  FileSystem{0x65735546, "fuse", nullptr},
    FileSystem{0x01021994, "tmpfs", kGone},   FileSystem{0x858458F6, "ramfs", kGone},
    FileSystem{0x794C7630, "overlay", kGone},
};

Finding describe_file_system(const std::string& folder) {
  struct statfs room {};
  if (::statfs(folder.c_str(), &room) != 0)
    return {Level::kFail, kFolder, fmt::format("'{}': {}", folder, std::strerror(errno)), "give another --folder"};
  std::string name = fmt::format("file system {:#x}", static_cast<std::uint32_t>(room.f_type));
  const char* remark = nullptr;
  for (const FileSystem& known : kFileSystems)
    if (known.magic == static_cast<std::uint32_t>(room.f_type)) name = known.name, remark = known.remark;
  const std::uint64_t free_bytes = room.f_bavail * static_cast<std::uint64_t>(room.f_bsize);
  const std::string text = fmt::format("'{}' is on {}, {:.1f} GiB free", folder, name,
                                       static_cast<double>(free_bytes) / static_cast<double>(1 << 30));
  if (free_bytes < kLittleRoom)
    return {Level::kWarn, kFolder, text, "a save needs room for one more checkpoint than is kept; free some space"};
  if (remark != nullptr) return {Level::kWarn, kFolder, text, remark};
  return {Level::kOk, kFolder, text, ""};
}

// A temporary folder inside the folder, removed with its contents.
class Trial {
 public:
  explicit Trial(const std::string& folder) : path_(folder + "/.doctor-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category());
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

template <class Action>
void attempt(Findings& found, Level level, const char* what, const char* advice, const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    found.push_back({level, kFolder, fmt::format("{}: {}", what, error.what()), advice});
  }
}

// Saves and HDF5 use flock. A training that keeps others from its folder uses POSIX record locks
// (io/files/folder_lock.h). Test each lock on its own file: on NFS the two kinds may exclude each other.
void lock(const std::string& path, bool record) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  const bool locked =
      file >= 0 && (record ? ::fcntl(file, F_SETLK, &whole) == 0 : ::flock(file, LOCK_EX | LOCK_NB) == 0);
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!locked) throw std::system_error(error, std::generic_category());
}

}  // namespace

Findings check_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directory(folder, error);  // as a job does, which creates no parents
  if (error)
    return {{Level::kFail, kFolder, fmt::format("'{}' cannot be created: {}", folder, error.message()),
             "give another --folder, or create its parents and fix their permissions"}};
  Findings found{describe_file_system(folder)};
  const std::size_t before = found.size();
  attempt(found, Level::kFail, "a file cannot be created in it", "fix its permissions, or give another --folder", [&] {
    const Trial trial(folder);
    const std::array bytes{std::byte{1}, std::byte{2}};
    attempt(found, Level::kFail, "a file cannot be replaced durably", "keep checkpoints on another file system", [&] {
      io::write_file_durably(trial.file("file"), bytes);
      io::write_file_durably(trial.file("file"), bytes);
    });
    attempt(found, Level::kFail, "no symbolic links, which `latest` needs", "keep checkpoints on another file system",
            [&] { io::write_link_durably(trial.file("latest"), "file"); });
    attempt(found, Level::kWarn, "no file locks", "set HDF5_USE_FILE_LOCKING=FALSE for h5ls, h5py and others",
            [&] { lock(trial.file("lock"), /*record=*/false); });
    attempt(found, Level::kWarn, "no POSIX locks", "make sure yourself that no two trainings save into one folder",
            [&] { lock(trial.file("record"), /*record=*/true); });
  });
  if (found.size() == before)
    found.push_back({Level::kOk, kFolder, "files are replaced durably; symbolic links and locks work", ""});
  return found;
}

}  // namespace syncline::tools
