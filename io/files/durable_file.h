// Replacing a file so that a crash, a kill or a full disk at any moment leaves either the old file or the new one.
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

// A file on its way: written as "<path>.tmp" in the same directory, which commit() makes `path`. What is written goes
// to the disk at once, while the caller makes the next bytes, so that commit() has little left to wait for.
//
// Whatever fails, the temporary is removed by the destructor, the old file stays as it was, and IoError names path and
// reason (a DiskFullError if that is why); only if the directory's fsync fails does the new file already stand, and the
// message says so. A limit on file sizes (RLIMIT_FSIZE) is an error like a full disk: its signal is held back from the
// thread. A temporary that a killed process left behind is overwritten; one that a living process is writing is an
// error. If `path` is a symbolic link, the link is replaced and its target stays.
//
// For one thread, from constructor to destructor. Two threads or processes saving the same path do not harm the file,
// one of them gets an IoError.
class DurableFile {
 public:
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  // Fsyncs the file, renames it to `path` and fsyncs the directory. Nothing may be written afterwards.
  void commit();
  // Renames it only.
  void commit_unsynced();

 private:
  class Temporary;
  std::unique_ptr<Temporary> temporary_;
};

// The same for bytes that are all there.
void write_file_durably(const std::string& path, std::span<const std::byte> bytes);

// The same without fsync: every reader finds a whole file, but a power cut may leave an empty one. For files that are
// written anew all the time.
void replace_file(const std::string& path, std::span<const std::byte> bytes);

// The same for a short text where the disk is full: an existing file is written over in one piece, and what the new
// text is shorter by is blank. Throws IoError.
void replace_text_in_place(const std::string& path, std::string text);

// Makes the directory if it is missing (not those above it), so that it survives a power cut. Throws IoError.
void make_directory_durably(const std::string& directory);

// Makes `path` a symbolic link to `target`, in place of whatever link or file stood there: at every moment it is the
// old one or the new one. Throws IoError as DurableFile does, also where the file system has no symbolic links.
void write_link_durably(const std::string& path, const std::string& target);

// Removes "<path>.tmp" unless a living process is writing it: what a killed one left of a path that nobody saves again.
// What cannot be removed stays, without a word.
void remove_abandoned_temporary(const std::string& path) noexcept;

// The folder of a file, "." for a name without one.
std::string directory_of(const std::string& path);

}  // namespace syncline::io
