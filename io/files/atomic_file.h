// Atomic file replacement: after a crash, a kill or a full disk at any moment, either the old or the new file is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "syncline/error.h"

namespace syncline::io {

// The disk, or the user's part of it, is full.
struct DiskFullError : IoError {
  using IoError::IoError;
};

// Writes "<path>.tmp" in the same directory; commit() renames it to `path`. Writeback starts while the caller makes the
// next bytes, so commit() waits for little.
//
// On failure the destructor removes the temporary, the old file stays unchanged, and IoError names path and reason
// (DiskFullError for a full disk). If close or the fsync of the directory fails, the new file is already in place, and
// the message says so. A file size limit (RLIMIT_FSIZE) is an error like a full disk; the thread blocks SIGXFSZ. A
// temporary left by a killed process is overwritten; one that a living process is writing is an error. A symbolic link
// at `path` is replaced; its target stays.
//
// One thread must construct, use and destroy an object. If two threads or processes save the same path, one of them
// gets an IoError and the file stays whole.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  // Fsyncs the file, renames it to `path` and fsyncs the directory. No write() may follow.
  void commit();
  // Renames the file, without fsync. No write() may follow.
  void commit_unsynced();

 private:
  class Temporary;
  std::unique_ptr<Temporary> temporary_;
};

// Replaces `path` by `bytes` through an AtomicFile.
void write_file_durably(const std::string& path, std::span<const std::byte> bytes);

// The same without fsync: readers always see a whole file, but a power cut may leave an empty one. For files that are
// rewritten frequently.
void replace_file(const std::string& path, std::span<const std::byte> bytes);

// Overwrites an existing file in place, for a short text on a full disk. Blanks pad the text to the old length. Throws
// IoError.
void replace_text_in_place(const std::string& path, std::string text);

// Creates the directory if it is missing (not its parents), so that it survives a power cut. Throws IoError.
void make_directory_durably(const std::string& directory);

// Atomically replaces the link or file at `path` by a symbolic link to `target`. Throws IoError as AtomicFile does,
// also if the file system has no symbolic links.
void write_link_durably(const std::string& path, const std::string& target);

// Removes "<path>.tmp", left by a killed process, unless a living process is writing it. Ignores errors.
void remove_abandoned_temporary(const std::string& path) noexcept;

// The folder of a file, "." for a name without one.
std::string directory_of(const std::string& path);

}  // namespace syncline::io
