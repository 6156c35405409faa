// HDF5 files and groups: every return code is checked and becomes one IoError that names file, object and reason.
//
// A file is either made new (create ... commit), which puts it in place all or nothing (io/files/durable_file.h,
// io/hdf5/layout.h), or opened read only.
//
// Needs a live Hdf5Session; a group must not outlive its file's session. Objects are movable, not copyable.
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
// A file that cannot be opened at all, as opposed to one that is damaged.
struct UnreadableError : IoError {
  using IoError::IoError;
};

class Hdf5Group {
  friend class Hdf5File;

 public:
  Hdf5Group(Hdf5Handle handle, Hdf5Place place) : handle_(std::move(handle)), place_(std::move(place)) {}

  hid_t id() const { return handle_.get(); }
  const Hdf5Place& place() const { return place_; }
  // The place of something inside.
  Hdf5Place place_of(std::string_view name) const;

  // The names of its links, sorted.
  std::vector<std::string> links() const;
  // True if a link (group or dataset) of this name exists. `name` has no slash.
  bool has(std::string_view name) const;
  // Opens what `name` (no slash) links to. Soft and external links are refused: they can point at any file.
  Hdf5Handle open(std::string_view name) const;

  // What an external link of this name (no slash) points at; nothing if it is none. It is never followed by itself.
  struct ExternalLink {
    std::string file, object;
  };
  std::optional<ExternalLink> external_link(const std::string& name) const;
  void make_external_link(const std::string& name, const ExternalLink& target) const;

  // Opens "a/b/c". Throws IoError if a part is missing or no group.
  Hdf5Group group(std::string_view path) const;
  // The same, making those that are missing.
  Hdf5Group make_group(std::string_view path) const;

  bool has_attribute(const std::string& name) const;
  // Attributes. Text is stored as fixed-length byte strings, as h5py stores NumPy's; reading takes both kinds.
  void write_text(const std::string& name, std::string_view text) const;
  std::string read_text(const std::string& name) const;
  void write_integer(const std::string& name, std::int64_t value) const;
  std::int64_t read_integer(const std::string& name) const;
  void write_unsigned(const std::string& name, std::uint64_t value) const;
  std::uint64_t read_unsigned(const std::string& name) const;
  void write_real(const std::string& name, double value) const;
  double read_real(const std::string& name) const;

  // A list of names. HDF5 limits an attribute to 64 KiB; a longer list is split evenly over name0, name1, ... as
  // Keras does. Throws ValueError if one name alone is longer than that.
  void write_names(const std::string& name, std::span<const std::string> names) const;
  std::vector<std::string> read_names(const std::string& name) const;

 private:
  void write_strings(const std::string& name, std::span<const std::string> texts, std::size_t width, bool scalar) const;
  std::vector<std::string> read_strings(const std::string& name) const;
  void write_number(const std::string& name, hid_t file_type, hid_t memory_type, const void* value) const;
  void read_number(const std::string& name, hid_t memory_type, void* value) const;

  Hdf5Handle handle_;
  Hdf5Place place_;
};

class Hdf5File {
 public:
  // A new file, which is at `path` after commit(), or never. Throws IoError if there can be no file.
  static Hdf5File create(const std::string& path);
  // Opens an existing file read only. Throws UnreadableError if it is missing, not ours to read or no regular file,
  // IoError if it is truncated or not HDF5.
  static Hdf5File open(const std::string& path, std::string_view kind = "checkpoint");

  Hdf5File(Hdf5File&&) noexcept;
  ~Hdf5File();

  const Hdf5Group& root() const { return root_; }
  // Refuses texts of variable length from now on: where they are damaged, HDF5 crashes or reads without an end.
  void refuse_variable_texts() { root_.place_.fixed_texts = true; }

  // Of a new file: writes the whole contents of a contiguous dataset, whose space must have been allocated, and returns
  // their digest. The bytes are those of the file, little endian. Throws IoError if the disk refuses them.
  std::string write_contents(const Hdf5Group& dataset, std::span<const std::byte> bytes);
  // Of a new file, once and at the end: puts it in place.
  void commit();

 private:
  // What a new file is made of; the layout lives longer than HDF5's handles.
  struct Making;

  Hdf5File(std::unique_ptr<Making> making, Hdf5Handle file, const Hdf5Place& place);

  std::unique_ptr<Making> making_;
  Hdf5Handle file_;
  Hdf5Group root_;
};

}  // namespace syncline::io
