#include "io/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "syncline/error.h"

namespace syncline::io {
namespace {

using namespace std::chrono_literals;

// Lists the process too: a forked child does not hold its parent's locks.
struct Held {
  pid_t process;
  std::pair<dev_t, ino_t> folder;
  friend bool operator==(const Held&, const Held&) = default;
};

std::mutex held_mutex;
std::vector<Held> held;

std::pair<dev_t, ino_t> folder_of(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    fail<IoError>("checkpoint folder '", folder, "': cannot use it: ", std::strerror(errno));
  return {status.st_dev, status.st_ino};
}

[[noreturn]] void fail_held(const std::string& folder, const std::string& holder) {
  fail<IoError>("checkpoint folder '", folder, "': another training saves into it (", holder,
                "); wait until that training ends, or give another folder");
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, std::chrono::duration<double> patience)
    : path_(folder + "/.lock"), process_(::getpid()), folder_(folder_of(folder)) {
  take_in_process(folder);
  try {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!try_lock()) {
      if (std::chrono::steady_clock::now() >= until) fail_held(folder, holder());
      std::this_thread::sleep_for(100ms);
    }
  } catch (...) {
    leave_in_process();
    throw;
  }
}

FolderLock::~FolderLock() {
  if (process_ != ::getpid()) return;
  ::unlink(path_.c_str());
  file_.reset();
  leave_in_process();
}

// fcntl locks belong to the process, so they do not exclude its own threads.
void FolderLock::take_in_process(const std::string& folder) const {
  const std::lock_guard lock(held_mutex);
  if (std::find(held.begin(), held.end(), Held{process_, folder_}) != held.end()) fail_held(folder, "this process");
  held.push_back({process_, folder_});
}

void FolderLock::leave_in_process() const {
  const std::lock_guard lock(held_mutex);
  std::erase(held, Held{process_, folder_});
}

bool FolderLock::try_lock() {
  Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0)
    fail<IoError>("cannot open '", path_, "', which locks the folder: ", std::strerror(errno),
                  errno == EACCES ? "; if another user's training left it behind, remove it" : "");
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool locked = ::fcntl(file.get(), F_SETLK, &whole) == 0;
  if (!locked && (errno == EAGAIN || errno == EACCES)) return false;
  file_.emplace(file.release());
  if (!locked) return true;  // the file system has no locks
  if (is_at_its_place()) write_holder();
  else file_.reset();
  return file_.has_value();
}

// False if the previous holder has removed the file meanwhile.
bool FolderLock::is_at_its_place() const {
  struct stat open {
  }, there{};
  return ::fstat(file_->get(), &open) == 0 && ::lstat(path_.c_str(), &there) == 0 && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

// For messages only, so errors are ignored: on a full disk the lock holds without a name.
void FolderLock::write_holder() const {
  const HoldFileSizeSignal hold;
  utsname machine{};
  ::uname(&machine);
  const std::string text = fmt::format("process {} on {}, since {:%Y-%m-%d %H:%M:%S}\n", process_, machine.nodename,
                                       fmt::localtime(std::time(nullptr)));
  if (::ftruncate(file_->get(), 0) == 0) write_all(file_->get(), 0, std::as_bytes(std::span(text)));
}

std::string FolderLock::holder() const {
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "its process is not known" : line;
}

}  // namespace syncline::io
