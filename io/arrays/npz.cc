#include "io/arrays/npz.h"

#include <zip.h>

#include <algorithm>
#include <list>
#include <set>
#include <string_view>
#include <vector>

#include "io/arrays/npy.h"
#include "io/files/refuse.h"

namespace syncline::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr const char* kOutline = "syncline.json";
constexpr std::uint64_t kLongestOutline = 100'000'000;
// No deflate ratio exceeds this; a directory that promises more is damaged.
constexpr std::uint64_t kLargestCompression = 1100;

template <class... Parts>
[[noreturn]] void fail_at(const std::string& path, const Parts&... parts) {
  refuse("npz file '", path, "': ", parts...);
}

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }  // discards changes
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Member = std::unique_ptr<zip_file_t, CloseMember>;

struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, FreeSource>;

struct Place {
  zip_uint64_t index = 0;
  std::uint64_t size = 0;
  bool stored = false;  // uncompressed, so reads may begin anywhere
};

// The members of one open archive.
class Directory {
 public:
  explicit Directory(const std::string& path) : path_(path) {
    int code = 0;
    archive_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
    if (archive_ == nullptr) {
      zip_error_t error;
      zip_error_init_with_code(&error, code);
      const std::string reason = zip_error_strerror(&error);
      zip_error_fini(&error);
      fail_at(path, "cannot open: ", reason);
    }
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) add(static_cast<zip_uint64_t>(i));
  }

  const std::vector<ArrayEntry>& entries() const { return entries_; }
  const std::string& outline() const { return outline_; }
  const Place& place(std::size_t index) const { return places_[index]; }

  std::size_t find(std::string_view name) const {
    const auto is_it = [&](const ArrayEntry& entry) { return entry.name == name; };
    const auto found = std::find_if(entries_.begin(), entries_.end(), is_it);
    if (found == entries_.end()) fail_at(path_, "has no array '", name, "'");
    return static_cast<std::size_t>(found - entries_.begin());
  }

  Member open(const Place& place) const {
    Member member(zip_fopen_index(archive_.get(), place.index, 0));
    if (member == nullptr) fail_at(path_, "member ", place.index, ": ", zip_strerror(archive_.get()));
    return member;
  }

  Array unpacked(const Place& place) const {
    Array bytes = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(place.size)});
    read_content(place, {bytes.raw(), bytes.bytes()});
    return bytes;
  }

  Array read(std::size_t index) const {
    const Place& place = places_.at(index);
    const std::string bytes = content(place, place.size);
    Array value = parse_npy(what(entries_[index].name), std::as_bytes(std::span(bytes)));
    check_bools(path_, entries_[index].name, value);
    return value;
  }

 private:
  std::string what(std::string_view name) const { return join_text("npz file '", path_, "': '", name, "'"); }

  void add(zip_uint64_t index) {
    zip_stat_t status;
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive_.get(), index, 0, &status) != 0 || (status.valid & kNeeded) != kNeeded)
      fail_at(path_, "member ", index, " is damaged: ", zip_strerror(archive_.get()));
    std::string name = status.name;
    if (status.encryption_method != ZIP_EM_NONE) fail_at(path_, "'", name, "' is encrypted, which is refused");
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
      fail_at(path_, "'", name, "' has compression ", status.comp_method,
              "; only stored and deflated members are supported");
    if (status.size / kLargestCompression > status.comp_size)
      fail_at(path_, "'", name, "' claims ", status.size, " bytes, but only ", status.comp_size, " are stored");
    const Place place{index, status.size, status.comp_method == ZIP_CM_STORE};
    if (name == kOutline && outline_.empty() && place.size <= kLongestOutline) {
      outline_ = content(place, place.size);
      return;
    }
    if (!name.ends_with(kSuffix)) fail_at(path_, "'", name, "' is not an npy array");
    name.resize(name.size() - kSuffix.size());
    if (!seen_.insert(name).second) fail_at(path_, "two arrays have the name '", name, "'");
    const std::string begin = content(place, std::min<std::uint64_t>(place.size, kLongestNpyHeader));
    NpyHeader header = parse_npy_header(what(name), std::as_bytes(std::span(begin)));
    entries_.push_back({name, header.dtype, std::move(header.shape)});
    places_.push_back(place);
  }

  std::string content(const Place& place, std::uint64_t size) const {
    std::string bytes(size, '\0');
    read_content(place, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  // Reads the first bytes of a member. Reading to the end makes libzip check the CRC-32.
  void read_content(const Place& place, std::span<std::byte> target) const {
    const Member member = open(place);
    char beyond = 0;
    const zip_int64_t got = zip_fread(member.get(), target.data(), target.size());
    const bool whole = got == static_cast<zip_int64_t>(target.size());
    if (!whole || (target.size() == place.size && zip_fread(member.get(), &beyond, 1) != 0))
      fail_at(path_, "member ", place.index, " is damaged: ", zip_file_strerror(member.get()));
  }

  std::string path_;
  Archive archive_;
  std::vector<ArrayEntry> entries_;
  std::vector<Place> places_;
  std::set<std::string> seen_;
  std::string outline_;
};

class Npz : public ArrayFile {
 public:
  explicit Npz(Directory directory)
      : ArrayFile(directory.entries(), directory.outline()), directory_(std::move(directory)) {}

  Array read(std::size_t index) override { return directory_.read(index); }

 private:
  Directory directory_;
};

class StoredMember : public RandomAccessFile {
 public:
  StoredMember(std::string path, std::shared_ptr<const Directory> directory, const Place& place)
      : RandomAccessFile(std::move(path), place.size),
        directory_(std::move(directory)),
        member_(directory_->open(place)) {}

  void read(std::uint64_t offset, std::span<std::byte> target) override {
    if (target.empty()) return;
    if (zip_fseek(member_.get(), static_cast<zip_int64_t>(offset), SEEK_SET) != 0 ||
        zip_fread(member_.get(), target.data(), target.size()) != static_cast<zip_int64_t>(target.size()))
      fail_at(path(), "cannot read ", target.size(), " bytes at ", offset, ": ", zip_file_strerror(member_.get()));
  }

 private:
  std::shared_ptr<const Directory> directory_;  // first: outlives the member
  Member member_;
};

// Collects members and makes the archive. The members' bytes must live until finish() returns.
class Writer {
 public:
  explicit Writer(const std::string& path) : path_(path), target_(zip_source_buffer_create(nullptr, 0, 0, nullptr)) {
    if (target_ != nullptr) archive_.reset(zip_open_from_source(target_.get(), ZIP_TRUNCATE, nullptr));
    if (archive_ == nullptr) fail_at(path_, "cannot start the archive");
    zip_source_keep(target_.get());  // the archive owns one reference
  }

  void add(const std::string& name, std::span<const zip_buffer_fragment_t> parts) {
    Source source(zip_source_buffer_fragment_create(parts.data(), parts.size(), 0, nullptr));
    const zip_int64_t index =
        source == nullptr ? -1 : zip_file_add(archive_.get(), name.c_str(), source.get(), ZIP_FL_ENC_UTF_8);
    if (index < 0) fail_at(path_, "cannot add '", name, "': ", zip_strerror(archive_.get()));
    static_cast<void>(source.release());  // owned by the archive
    const auto member = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kMidnight = 0, kFirstDay = 1 << 5 | 1;  // of 1980, the earliest date in zip
    if (zip_set_file_compression(archive_.get(), member, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive_.get(), member, kMidnight, kFirstDay, 0) != 0)
      fail_at(path_, "cannot set the properties of '", name, "': ", zip_strerror(archive_.get()));
  }

  Array finish() {
    if (zip_close(archive_.get()) != 0) fail_at(path_, "cannot create the archive: ", zip_strerror(archive_.get()));
    static_cast<void>(archive_.release());  // freed by zip_close
    zip_stat_t status;
    zip_source_t* source = target_.get();
    if (zip_source_stat(source, &status) != 0 || (status.valid & ZIP_STAT_SIZE) == 0 || zip_source_open(source) != 0)
      fail_at(path_, "cannot read the archive back: ", zip_error_strerror(zip_source_error(source)));
    Array image = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(status.size)});
    const zip_int64_t got = zip_source_read(source, image.raw(), status.size);
    zip_source_close(source);
    if (got != static_cast<zip_int64_t>(status.size)) fail_at(path_, "cannot read the archive back");
    return image;
  }

 private:
  std::string path_;
  Source target_;
  Archive archive_;
};

zip_buffer_fragment_t part_of(const void* bytes, std::size_t size) {
  return {static_cast<zip_uint8_t*>(const_cast<void*>(bytes)), size};  // libzip does not write to it
}

}  // namespace

std::unique_ptr<ArrayFile> open_npz(const std::string& path) { return std::make_unique<Npz>(Directory(path)); }

std::vector<NpzMember> open_npz_members(const std::string& path, std::span<const std::string> names,
                                        std::size_t memory) {
  const auto directory = std::make_shared<const Directory>(path);
  std::vector<std::size_t> wanted(names.empty() ? directory->entries().size() : names.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = names.empty() ? i : directory->find(names[i]);
  std::vector<NpzMember> members;
  for (const std::size_t index : wanted) {
    const std::string& name = directory->entries()[index].name;
    const Place& place = directory->place(index);
    const std::string what = join_text(path, "/", name);
    if (place.stored) {
      members.push_back({name, std::make_unique<StoredMember>(what, directory, place)});
      continue;
    }
    if (place.size > memory)
      fail_at(path, "'", name, "' is compressed, so its ", place.size, " bytes must be held in memory, but only ",
              memory, " are left; write it with numpy.savez, which does not compress");
    memory -= place.size;
    members.push_back({name, random_access_file_of(what, directory->unpacked(place))});
  }
  return members;
}

Array serialize_npz(const std::string& path, std::span<const NamedArray> arrays, const std::string& outline) {
  std::list<std::string> headers;  // a list: the writer points at its elements
  std::set<std::string_view> seen;
  Writer writer(path);
  for (const auto& [name, value] : arrays) {
    if (!seen.insert(name).second) fail_at(path, "two arrays have the name '", name, "'");
    const std::string& header = headers.emplace_back(npy_header(value.dtype(), value.shape()));
    const zip_buffer_fragment_t parts[] = {part_of(header.data(), header.size()), part_of(value.raw(), value.bytes())};
    writer.add(name + std::string(kSuffix), std::span(parts, value.bytes() > 0 ? 2 : 1));
  }
  const zip_buffer_fragment_t text[] = {part_of(outline.data(), outline.size())};
  if (!outline.empty()) writer.add(kOutline, text);
  return writer.finish();
}

}  // namespace syncline::io
