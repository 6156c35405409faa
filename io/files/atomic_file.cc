#include "io/files/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "io/files/descriptor.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

[[noreturn]] void fail_save(const std::string& path, std::string_view action, std::string_view reason) {
  fail<IoError>("cannot save '", path, "': ", action, ": ", reason, "; the previous file, if any, is unchanged");
}
[[noreturn]] void fail_save(const std::string& path, std::string_view action, int error) {
  const std::string text = join_text("cannot save '", path, "': ", action, ": ", reason_of_write(error),
                                     "; the previous file, if any, is unchanged");
  if (error == ENOSPC || error == EDQUOT) throw DiskFullError(text);
  throw IoError(text);
}

// Whether `name` is still the file open as `descriptor`: a rival may have renamed it before this process had the lock.
bool is_still(const std::string& name, int descriptor) {
  struct stat by_name {
  }, by_descriptor{};
  return ::stat(name.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_dev == by_descriptor.st_dev && by_name.st_ino == by_descriptor.st_ino;
}

// True if no process is writing this temporary. On a file system without locks: if it has not changed for an hour.
bool is_abandoned(int descriptor) {
  const FileLock lock = try_lock(descriptor, LOCK_EX);
  if (lock != FileLock::kUnsupported) return lock == FileLock::kTaken;
  constexpr std::time_t kLong = 3600;
  struct stat found {};
  return ::fstat(descriptor, &found) == 0 && std::time(nullptr) - found.st_mtime > kLong;
}

// Opens and locks the temporary. The caller truncates it only under the lock, so the bytes of another writer stay
// untouched.
int open_temporary(const std::string& path, const std::string& temporary) {
  struct stat status {};  // a rename would replace a device by a file, for all programs
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode) &&
      !S_ISDIR(status.st_mode))
    fail_save(path, "replacing it", "it is a device, a pipe or a socket; give the path of a file");
  // O_NONBLOCK: opening a FIFO would else wait for a reader.
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor < 0) fail_save(path, join_text("opening '", temporary, "'"), errno);
  // Without locks only the rename protects a file.
  if (try_lock(descriptor, LOCK_EX) == FileLock::kHeldByAnother) {
    ::close(descriptor);
    fail_save(path, join_text("opening '", temporary, "'"), "another process is saving to this path");
  }
  if (!is_still(temporary, descriptor)) {
    ::close(descriptor);
    fail_save(path, join_text("opening '", temporary, "'"), "another process saved to this path at the same moment");
  }
  return descriptor;
}

// Fsyncs the directory of `path`. A directory that is writable but not readable cannot be opened; then syncfs on the
// file itself syncs the whole file system.
void sync_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  const Descriptor descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0 && errno == EACCES) {
    const Descriptor named(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (named.get() >= 0 && ::syncfs(named.get()) == 0) return;
    errno = EACCES;
  }
  // EINVAL: this file system cannot sync a directory.
  if (descriptor.get() < 0 || (::fsync(descriptor.get()) != 0 && errno != EINVAL))
    fail<IoError>("saving '", path, "': fsync of directory '", directory, "': ", std::strerror(errno),
                  "; the new file is in place, but may not survive a power failure");
}

}  // namespace

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The temporary file; the destructor removes it unless rename() succeeded.
class AtomicFile::Temporary {
 public:
  explicit Temporary(std::string path)
      : path_(std::move(path)), name_(path_ + ".tmp"), descriptor_(open_temporary(path_, name_)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlink(name_.c_str());
  }

  void empty() {
    if (::ftruncate(descriptor_.get(), 0) != 0) fail_save(path_, "emptying the temporary file", errno);
  }

  void write(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t size = std::min(bytes.size(), kWriteback);
      write_or_fail(offset, bytes.first(size));
      start_writeback(offset, size);
      offset += size;
      bytes = bytes.subspan(size);
    }
  }

  void sync() {
    if (::fsync(descriptor_.get()) != 0) fail_save(path_, "fsync", errno);
  }

  // Makes the file system report what close would report: closing a duplicate flushes as well. Closing the file itself
  // would release its lock before the rename.
  void flush() {
    const int copy = ::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0 || ::close(copy) != 0) fail_save(path_, "close", errno);
  }

  // The lock, held by the descriptor, covers the rename.
  void rename() {
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail_save(path_, join_text("renaming '", name_, "'"), errno);
    renamed_ = true;
    if (descriptor_.close() != 0)
      fail<IoError>("saving '", path_, "': close: ", std::strerror(errno), "; the new file is in place, but check it");
  }

  const std::string& path() const { return path_; }

 private:
  void write_or_fail(std::uint64_t offset, std::span<const std::byte> bytes) {
    const Written written = write_all(descriptor_.get(), offset, bytes);
    if (written.error != 0) fail_save(path_, join_text("writing byte ", offset + written.bytes), written.error);
  }

  // Advises the kernel, which would else wait for fsync. Errors are ignored, because fsync reports them.
  void start_writeback(std::uint64_t offset, std::size_t size) {
    fresh_begin_ = std::min(fresh_begin_, offset);
    fresh_ += size;
    if (fresh_ < kWriteback) return;
    ::sync_file_range(descriptor_.get(), static_cast<off_t>(fresh_begin_),
                      static_cast<off_t>(offset + size - fresh_begin_), SYNC_FILE_RANGE_WRITE);
    fresh_begin_ = UINT64_MAX;
    fresh_ = 0;
  }

  static constexpr std::size_t kWriteback = std::size_t{8} << 20;

  HoldFileSizeSignal hold_;
  std::string path_, name_;
  Descriptor descriptor_;
  std::uint64_t fresh_begin_ = UINT64_MAX, fresh_ = 0;  // written since the last writeback began
  bool renamed_ = false;
};

AtomicFile::AtomicFile(std::string path) : temporary_(std::make_unique<Temporary>(std::move(path))) {
  temporary_->empty();
}
AtomicFile::~AtomicFile() = default;

void AtomicFile::write(std::uint64_t offset, std::span<const std::byte> bytes) { temporary_->write(offset, bytes); }
void AtomicFile::commit() {
  temporary_->sync();
  temporary_->rename();
  sync_directory(temporary_->path());
}
void AtomicFile::commit_unsynced() {
  temporary_->flush();
  temporary_->rename();
}

void write_file_durably(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(0, bytes);
  file.commit();
}

void replace_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(0, bytes);
  file.commit_unsynced();
}

void replace_text_in_place(const std::string& path, std::string text) {
  const Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode))
    fail<IoError>("'", path, "': cannot overwrite it: ", std::strerror(errno));
  text.resize(std::max(text.size(), static_cast<std::size_t>(status.st_size)), ' ');
  const HoldFileSizeSignal hold;
  const Written written = write_all(descriptor.get(), 0, std::as_bytes(std::span(text)));
  if (written.error != 0) fail<IoError>("'", path, "': cannot overwrite it: ", reason_of_write(written.error));
}

void make_directory_durably(const std::string& directory) {
  const std::string name = directory.substr(0, std::max<std::size_t>(directory.find_last_not_of('/') + 1, 1));
  struct stat status {};
  if (::mkdir(name.c_str(), 0777) == 0) return sync_directory(name);
  const int error = errno;
  if (error != EEXIST || ::stat(name.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    fail<IoError>("checkpoint folder '", directory, "': cannot create it: ", std::strerror(error));
}

void write_link_durably(const std::string& path, const std::string& target) {
  const std::string temporary = path + ".tmp";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT)
    fail_save(path, join_text("removing '", temporary, "'"), errno);
  if (::symlink(target.c_str(), temporary.c_str()) != 0) fail_save(path, "making the symbolic link", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail_save(path, join_text("renaming '", temporary, "'"), error);
  }
  sync_directory(path);
}

void remove_abandoned_temporary(const std::string& path) noexcept {
  const std::string temporary = path + ".tmp";
  const Descriptor descriptor(::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (descriptor.get() < 0) return;
  if (is_abandoned(descriptor.get()) && is_still(temporary, descriptor.get())) ::unlink(temporary.c_str());
}

}  // namespace syncline::io
