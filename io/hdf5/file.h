// Hdf5File, Hdf5Group: HDF5 files and groups. Each failed HDF5 call throws one IoError that names file, object and
// reason.
//
// A file is either new (create ... commit, which replaces `path` atomically: io/files/atomic_file.h,
// io/hdf5/layout.h), or opened read-only.
//
// Needs a live Hdf5Session; a group must not outlive the session of its file. Objects are movable, not copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/handle.h"
#include "syncline/error.h"

namespace syncline::io {
// The file cannot be opened at all; a damaged file throws IoError.
struct UnreadableError : IoError {
  using IoError::IoError;
};

class Hdf5Group {
  friend class Hdf5File;

 public:
  Hdf5Group(Hdf5Handle handle, Hdf5Location location) : handle_(std::move(handle)), location_(std::move(location)) {}

  hid_t id() const { return handle_.get(); }
  const Hdf5Location& location() const { return location_; }
  // The location of a member, for messages.
  Hdf5Location location_of(std::string_view name) const;

  // The names of its links, sorted.
  std::vector<std::string> links() const;
  // Whether a link (group or dataset) of this name exists. `name` has no slash.
  bool has(std::string_view name) const;
  // The paths of all links below that lead to no group, soft and external ones too. Visits each group once.
  std::vector<std::string> leaves() const;
  // Opens the target of link `name` (no slash). Refuses soft and external links: they can point at any file.
  Hdf5Handle open(std::string_view name) const;

  // The target of external link `name` (no slash); empty if it is not an external link. Never follows the link.
  struct ExternalLink {
    std::string file, object;
  };
  std::optional<ExternalLink> external_link(const std::string& name) const;
  void make_external_link(const std::string& name, const ExternalLink& target) const;

  // Opens "a/b/c". Throws IoError if a part is missing or is not a group.
  Hdf5Group group(std::string_view path) const;
  // Opens "a/b/c" and creates missing groups.
  Hdf5Group make_group(std::string_view path) const;

  bool has_attribute(const std::string& name) const;
  // Attributes. Text is written as fixed-length byte strings, as h5py stores NumPy's; variable-length text is read too.
  void write_text(const std::string& name, std::string_view text) const;
  std::string read_text(const std::string& name) const;
  void write_integer(const std::string& name, std::int64_t value) const;
  std::int64_t read_integer(const std::string& name) const;
  void write_unsigned(const std::string& name, std::uint64_t value) const;
  std::uint64_t read_unsigned(const std::string& name) const;
  void write_real(const std::string& name, double value) const;
  double read_real(const std::string& name) const;

  // A list of names. HDF5 limits an attribute to 64 KiB; as in Keras, a longer list is split evenly over name0, name1,
  // ... Throws ValueError if a single name exceeds the limit.
  void write_names(const std::string& name, std::span<const std::string> names) const;
  std::vector<std::string> read_names(const std::string& name) const;

 private:
  struct Attribute {
    Hdf5Handle attribute, space, type;
  };
  // Throws IoError if there is none; `location` is for messages.
  Attribute open_attribute(const std::string& name, const Hdf5Location& location) const;
  void write_strings(const std::string& name, std::span<const std::string> texts, std::size_t width, bool scalar) const;
  std::vector<std::string> read_strings(const std::string& name) const;
  void write_number(const std::string& name, hid_t file_type, hid_t memory_type, const void* value) const;
  void read_number(const std::string& name, hid_t memory_type, void* value) const;

  Hdf5Handle handle_;
  Hdf5Location location_;
};

class Hdf5File {
 public:
  // Creates a file, which appears at `path` only with commit(). Throws IoError if it cannot be created.
  static Hdf5File create(const std::string& path);
  // Opens an existing file read-only. Throws UnreadableError if it is missing, unreadable or not a regular file,
  // IoError if it is truncated or not HDF5.
  static Hdf5File open(const std::string& path, std::string_view kind = "checkpoint");

  Hdf5File(Hdf5File&&) noexcept;
  ~Hdf5File();

  const Hdf5Group& root() const { return root_; }
  // Refuses variable-length text from now on: if it is damaged, HDF5 crashes or reads endlessly.
  void refuse_variable_texts() { root_.location_.fixed_texts = true; }

  // In a new file: writes all values of a contiguous dataset with allocated space, as the little-endian bytes of the
  // file, and returns their digest. Throws IoError if the write fails.
  std::string write_contents(const Hdf5Group& dataset, std::span<const std::byte> bytes);
  // Moves a new file to `path`. The last call on the file.
  void commit();

 private:
  // The parts of a new file. Declared first, because the layout must outlive HDF5's handles.
  struct Making;

  Hdf5File(std::unique_ptr<Making> making, Hdf5Handle file, const Hdf5Location& location);

  std::unique_ptr<Making> making_;
  Hdf5Handle file_;
  Hdf5Group root_;
};

}  // namespace syncline::io
