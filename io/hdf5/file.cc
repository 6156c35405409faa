#include "io/hdf5/file.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "io/files/atomic_file.h"
#include "io/files/descriptor.h"
#include "io/files/digest.h"
#include "io/hdf5/layout.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

// Keras's limit for an attribute in an HDF5 object header. Longer lists are split.
constexpr std::size_t kAttributeLimit = 64512;
// No valid attribute is longer. The limit bounds what a damaged header can make us allocate.
constexpr hsize_t kLongestAttribute = hsize_t{1} << 28;

// Arrays of at least this size are written to the disk directly, smaller ones together with the headers around them.
constexpr std::size_t kLargeArray = std::size_t{1} << 16;
// Block that is digested, then written while it is still in the processor's cache.
constexpr std::size_t kBlock = std::size_t{1} << 18;

// Uses the metadata format of HDF5 1.8, whose headers carry checksums; HDF5 1.10 reads it.
void set_format(hid_t access, const Hdf5Location& location) {
  checked(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110), location, "choose the file format");
}

// HDF5 cannot open a file without its own lock. Versions before 1.10.7, and 1.12.0, only read HDF5_USE_FILE_LOCKING.
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
void open_without_lock(hid_t access, const Hdf5Location& location) {
  checked(H5Pset_file_locking(access, false, true), location, "turn off file locks");
}
#else
void open_without_lock(hid_t, const Hdf5Location& location) {
  fail_unreadable(location, "the file system has no locks; set HDF5_USE_FILE_LOCKING=FALSE");
}
#endif

// Omits creation times, so that equal contents give equal bytes.
void drop_times(hid_t properties, const Hdf5Location& location) {
  checked(H5Pset_obj_track_times(properties, false), location, "turn off object times");
}

Hdf5Handle open_root(hid_t file, const Hdf5Location& location) {
  return checked(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, location, "open the root group");
}

Hdf5Handle make_group_at(const Hdf5Group& parent, const std::string& name) {
  const Hdf5Location location = parent.location_of(name);
  const Hdf5Handle properties = checked(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, location, "create group properties");
  drop_times(properties.get(), location);
  return checked(H5Gcreate2(parent.id(), name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose, location,
                 "create the group");
}

Hdf5Group open_group_at(const Hdf5Group& parent, const std::string& name) {
  Hdf5Handle handle = parent.open(name);
  Hdf5Location location = parent.location_of(name);
  if (H5Iget_type(handle.get()) != H5I_GROUP)
    fail_at(location, "is not a group; the file is not a checkpoint, or is damaged");
  return {std::move(handle), std::move(location)};
}

// Calls step(group, name) for each part of a path; step returns the next group.
template <class Step>
Hdf5Group descend(const Hdf5Group& start, std::string_view path, Step step) {
  Hdf5Group group(checked(H5Gopen2(start.id(), ".", H5P_DEFAULT), H5Gclose, start.location(), "open the group"),
                  start.location());
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    group = step(group, std::string(path.substr(0, end)));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return group;
}

Hdf5Handle string_type(std::size_t width, const Hdf5Location& location) {
  Hdf5Handle type = checked(H5Tcopy(H5T_C_S1), H5Tclose, location, "create a string type");
  checked(H5Tset_size(type.get(), width), location, "set the size of a string type");
  checked(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), location, "set the padding of a string type");
  return type;
}

std::vector<std::string> read_fixed(hid_t attribute, hid_t type, std::size_t count, const Hdf5Location& location) {
  const std::size_t width = H5Tget_size(type);
  std::vector<char> bytes(width * count);
  checked(H5Aread(attribute, type, bytes.data()), location, "read the attribute");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text(bytes.data() + i * width, width);
    text.erase(text.find_last_not_of('\0') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> read_variable(hid_t attribute, hid_t type, hid_t space, std::size_t count,
                                       const Hdf5Location& location) {
  std::vector<char*> pointers(count, nullptr);
  checked(H5Aread(attribute, type, pointers.data()), location, "read the attribute");
  std::vector<std::string> texts;
  for (const char* text : pointers) texts.emplace_back(text == nullptr ? "" : text);
  checked(H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data()), location, "free the attribute's text");
  return texts;
}

[[noreturn]] void fail_unreadable(const Hdf5Location& location, std::string_view reason) {
  fail<UnreadableError>(location.kind, " '", location.file, "': cannot open: ", reason);
}

}  // namespace

Hdf5Location Hdf5Group::location_of(std::string_view name) const {
  return {location_.file, join_text(location_.object, location_.object.ends_with('/') ? "" : "/", name), location_.kind,
          location_.fixed_texts};
}

bool Hdf5Group::has(std::string_view name) const {
  return checked(H5Lexists(id(), std::string(name).c_str(), H5P_DEFAULT), location_, "look up a link") > 0;
}

std::vector<std::string> Hdf5Group::links() const {
  H5G_info_t info;
  checked(H5Gget_info(id(), &info), location_, "count the links");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto name_at = [&](char* text, std::size_t size) {
      return checked(H5Lget_name_by_idx(id(), ".", H5_INDEX_NAME, H5_ITER_INC, i, text, size, H5P_DEFAULT), location_,
                     "read a link's name");
    };
    std::string& name = names.emplace_back(static_cast<std::size_t>(name_at(nullptr, 0)), '\0');
    name_at(name.data(), name.size() + 1);
  }
  return names;
}

Hdf5Handle Hdf5Group::open(std::string_view name) const {
  const Hdf5Location location = location_of(name);
  const std::string key(name);
  if (!has(key)) fail_at(location, join_text("is missing; the file is not a ", location.kind, ", or is damaged"));
  H5L_info_t link;
  checked(H5Lget_info(id(), key.c_str(), &link, H5P_DEFAULT), location, "read the link");
  if (link.type != H5L_TYPE_HARD)
    fail_at(location, "is a soft or external link, which is refused because it can point at any file");
  return checked(H5Oopen(id(), key.c_str(), H5P_DEFAULT), H5Oclose, location, "open the object");
}

std::vector<std::string> Hdf5Group::leaves() const {
  const auto visit = [](hid_t group, const char* name, const H5L_info_t* link, void* found) -> herr_t {
    if (link->type == H5L_TYPE_HARD) {
      const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
      if (object < 0) return -1;
      const bool is_group = H5Iget_type(object) == H5I_GROUP;
      if (H5Oclose(object) < 0) return -1;
      if (is_group) return 0;
    }
    static_cast<std::vector<std::string>*>(found)->emplace_back(name);
    return 0;
  };
  std::vector<std::string> found;
  checked(H5Lvisit(id(), H5_INDEX_NAME, H5_ITER_INC, visit, &found), location_, "list what is below");
  return found;
}

std::optional<Hdf5Group::ExternalLink> Hdf5Group::external_link(const std::string& name) const {
  H5L_info_t link;
  if (!has(name)) return std::nullopt;
  checked(H5Lget_info(id(), name.c_str(), &link, H5P_DEFAULT), location_, "read the link");
  if (link.type != H5L_TYPE_EXTERNAL) return std::nullopt;
  std::vector<char> value(link.u.val_size);
  const char *file = nullptr, *object = nullptr;
  checked(H5Lget_val(id(), name.c_str(), value.data(), value.size(), H5P_DEFAULT), location_, "read the link");
  checked(H5Lunpack_elink_val(value.data(), value.size(), nullptr, &file, &object), location_, "read the link");
  return ExternalLink{file, object};
}

void Hdf5Group::make_external_link(const std::string& name, const ExternalLink& target) const {
  checked(H5Lcreate_external(target.file.c_str(), target.object.c_str(), id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
          location_of(name), "create the link");
}

Hdf5Group Hdf5Group::group(std::string_view path) const { return descend(*this, path, open_group_at); }

Hdf5Group Hdf5Group::make_group(std::string_view path) const {
  return descend(*this, path, [](const Hdf5Group& parent, const std::string& name) -> Hdf5Group {
    if (parent.has(name)) return open_group_at(parent, name);
    return {make_group_at(parent, name), parent.location_of(name)};
  });
}

bool Hdf5Group::has_attribute(const std::string& name) const {
  return checked(H5Aexists(id(), name.c_str()), location_, "look up an attribute") > 0;
}

void Hdf5Group::write_text(const std::string& name, std::string_view text) const {
  const std::string copy(text);
  write_strings(name, std::span(&copy, 1), std::max<std::size_t>(copy.size(), 1), true);
}

std::string Hdf5Group::read_text(const std::string& name) const {
  std::vector<std::string> texts = read_strings(name);
  if (texts.size() != 1)
    fail_at(location_of(name), "is not a single text; the file is not a checkpoint, or is damaged");
  return std::move(texts[0]);
}

void Hdf5Group::write_integer(const std::string& name, std::int64_t value) const {
  write_number(name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}
void Hdf5Group::write_unsigned(const std::string& name, std::uint64_t value) const {
  write_number(name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}
void Hdf5Group::write_real(const std::string& name, double value) const {
  write_number(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}
std::int64_t Hdf5Group::read_integer(const std::string& name) const {
  std::int64_t value = 0;
  read_number(name, H5T_NATIVE_INT64, &value);
  return value;
}
std::uint64_t Hdf5Group::read_unsigned(const std::string& name) const {
  std::uint64_t value = 0;
  read_number(name, H5T_NATIVE_UINT64, &value);
  return value;
}
double Hdf5Group::read_real(const std::string& name) const {
  double value = 0;
  read_number(name, H5T_NATIVE_DOUBLE, &value);
  return value;
}

void Hdf5Group::write_number(const std::string& name, hid_t file_type, hid_t memory_type, const void* value) const {
  const Hdf5Location location = location_of(name);
  const Hdf5Handle space = checked(H5Screate(H5S_SCALAR), H5Sclose, location, "create a scalar");
  const Hdf5Handle attribute = checked(H5Acreate2(id(), name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                                       H5Aclose, location, "create the attribute");
  checked(H5Awrite(attribute.get(), memory_type, value), location, "write the attribute");
}

Hdf5Group::Attribute Hdf5Group::open_attribute(const std::string& name, const Hdf5Location& location) const {
  if (!has_attribute(name))
    fail_at(location, join_text("is missing; the file is not a ", location.kind, ", or is damaged"));
  Hdf5Handle attribute = checked(H5Aopen(id(), name.c_str(), H5P_DEFAULT), H5Aclose, location, "open the attribute");
  Hdf5Handle space = checked(H5Aget_space(attribute.get()), H5Sclose, location, "read the attribute's shape");
  Hdf5Handle type = checked(H5Aget_type(attribute.get()), H5Tclose, location, "read the attribute's type");
  return {std::move(attribute), std::move(space), std::move(type)};
}

void Hdf5Group::read_number(const std::string& name, hid_t memory_type, void* value) const {
  const Hdf5Location location = location_of(name);
  const auto [attribute, space, type] = open_attribute(name, location);
  if (H5Sget_simple_extent_npoints(space.get()) != 1 || H5Tget_class(type.get()) != H5Tget_class(memory_type))
    fail_at(location, "is not a single number of the expected type; the file is not a checkpoint, or is damaged");
  checked(H5Aread(attribute.get(), memory_type, value), location, "read the attribute");
}

void Hdf5Group::write_names(const std::string& name, std::span<const std::string> names) const {
  std::size_t width = 1;
  for (const std::string& text : names) width = std::max(width, text.size());
  if (width > kAttributeLimit)
    fail<ValueError>("checkpoint '", location_.file, "', ", location_.object, ": a name of ", width,
                     " bytes does not fit an attribute of ", kAttributeLimit, " bytes; use a shorter name");
  const std::size_t count = names.size();
  std::size_t parts = 1;
  while ((count + parts - 1) / parts * width > kAttributeLimit) ++parts;
  if (parts == 1) return write_strings(name, names, width, false);
  for (std::size_t part = 0, begin = 0; part < parts; ++part) {
    const std::size_t length = count / parts + (part < count % parts ? 1 : 0);
    write_strings(join_text(name, part), names.subspan(begin, length), width, false);
    begin += length;
  }
}

std::vector<std::string> Hdf5Group::read_names(const std::string& name) const {
  if (has_attribute(name)) return read_strings(name);
  std::vector<std::string> names;
  int part = 0;
  for (; has_attribute(join_text(name, part)); ++part)
    for (std::string& text : read_strings(join_text(name, part))) names.push_back(std::move(text));
  if (part == 0) fail_at(location_of(name), "is missing; the file is not a checkpoint in Keras's layout");
  return names;
}

void Hdf5Group::write_strings(const std::string& name, std::span<const std::string> texts, std::size_t width,
                              bool scalar) const {
  const Hdf5Location location = location_of(name);
  const Hdf5Handle type = string_type(width, location);
  const hsize_t count = texts.size();
  const Hdf5Handle space = checked(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr), H5Sclose,
                                   location, "create the attribute's shape");
  std::vector<char> bytes(std::max<std::size_t>(width * texts.size(), 1), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i)
    std::memcpy(bytes.data() + i * width, texts[i].data(), texts[i].size());
  const Hdf5Handle attribute =
      checked(H5Acreate2(id(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, location,
              "create the attribute");
  checked(H5Awrite(attribute.get(), type.get(), bytes.data()), location, "write the attribute");
}

std::vector<std::string> Hdf5Group::read_strings(const std::string& name) const {
  const Hdf5Location location = location_of(name);
  const auto [attribute, space, type] = open_attribute(name, location);
  const hssize_t count = checked(H5Sget_simple_extent_npoints(space.get()), location, "count the attribute's elements");
  // For a layer without weights, Keras writes an empty list of doubles.
  if (count == 0) return {};
  if (H5Tget_class(type.get()) != H5T_STRING)
    fail_at(location, "is not text; the file is not a checkpoint, or is damaged");
  if (H5Aget_storage_size(attribute.get()) > kLongestAttribute)
    fail_at(location, "is too long for a list of names; the file is damaged");
  const htri_t variable = checked(H5Tis_variable_str(type.get()), location, "read the attribute's type");
  const auto elements = static_cast<std::size_t>(count);
  if (variable > 0 && location.fixed_texts)
    fail_at(location, "is text of variable length, which Syncline never writes; the file is damaged or hostile");
  if (variable > 0) return read_variable(attribute.get(), type.get(), space.get(), elements, location);
  return read_fixed(attribute.get(), type.get(), elements, location);
}

struct Hdf5File::Making {
  explicit Making(const std::string& path) : disk(path) {}

  AtomicFile disk;
  Hdf5Layout layout;
};

Hdf5File::Hdf5File(std::unique_ptr<Making> making, Hdf5Handle file, const Hdf5Location& location)
    : making_(std::move(making)),
      file_(std::move(file)),
      root_(open_root(file_.get(), location), {location.file, "/", location.kind}) {}

Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;

Hdf5File Hdf5File::create(const std::string& path) {
  const Hdf5Location location{path, ""};
  auto making = std::make_unique<Making>(path);
  const Hdf5Handle access = checked(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, location, "create access properties");
  const Hdf5Handle create = checked(H5Pcreate(H5P_FILE_CREATE), H5Pclose, location, "create creation properties");
  set_format(access.get(), location);
  drop_times(create.get(), location);
  making->layout.use_in(access.get(), location);
  Hdf5Handle file = checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, create.get(), access.get()), H5Fclose, location,
                            "create the file");
  return {std::move(making), std::move(file), location};
}

std::string Hdf5File::write_contents(const Hdf5Group& dataset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return content_digest(bytes);
  const haddr_t address = H5Dget_offset(dataset.id());
  if (address == HADDR_UNDEF) fail_hdf5(dataset.location(), "find the offset of the dataset");
  if (bytes.size() < kLargeArray) {
    making_->layout.write(address, bytes);
    return content_digest(bytes);
  }
  making_->layout.exclude(address, bytes.size());
  RunningDigest digest;
  for (std::size_t begin = 0; begin < bytes.size(); begin += kBlock) {
    const std::span<const std::byte> block = bytes.subspan(begin, std::min(kBlock, bytes.size() - begin));
    digest.add(block);
    making_->disk.write(address + begin, block);
  }
  return digest.text();
}

void Hdf5File::commit() {
  const Hdf5Location& location = root_.location();
  checked(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), location, "write the headers");
  hsize_t size = 0;
  checked(H5Fget_filesize(file_.get(), &size), location, "read the size of the file");
  making_->layout.write_to(making_->disk, size);
  making_->disk.commit();
}

Hdf5File Hdf5File::open(const std::string& path, std::string_view kind) {
  const Hdf5Location location{path, "", kind};
  // HDF5's own message for a missing file is long and hides the reason.
  const RegularFile found = open_regular(path);
  if (found.descriptor < 0) fail_unreadable(location, found.refused);
  const bool locks = try_lock(found.descriptor, LOCK_SH) != FileLock::kUnsupported;
  ::close(found.descriptor);
  const htri_t recognised = H5Fis_hdf5(path.c_str());
  if (recognised == 0)
    fail_at(location, join_text("is not an HDF5 file, or its beginning is damaged; use another ", kind));
  // Set the driver explicitly, so that the environment cannot change it: ArrayReader uses its descriptor.
  const Hdf5Handle access = checked(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, location, "create access properties");
  checked(H5Pset_fapl_sec2(access.get()), location, "choose the file driver");
  if (!locks) open_without_lock(access.get(), location);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (file < 0 && system_refused())
    fail_unreadable(location, "another process writes or locks it, or too many files are open");
  return {nullptr, checked(file, H5Fclose, location, "open the HDF5 file (damaged or truncated)"), location};
}

}  // namespace syncline::io
