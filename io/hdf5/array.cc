#include "io/hdf5/array.h"

#include <array>
#include <bit>
#include <vector>

#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr const char* kDigest = "xxh3_128";
// No deflate ratio exceeds this; a header that promises more is damaged.
constexpr hsize_t kLargestCompression = 1100;

// h5py's representation of NumPy's bool.
Hdf5Handle bool_type(const Hdf5Location& location) {
  Hdf5Handle type = checked(H5Tenum_create(H5T_STD_I8LE), H5Tclose, location, "create the type of bool");
  const signed char no = 0, yes = 1;
  checked(H5Tenum_insert(type.get(), "FALSE", &no), location, "create the type of bool");
  checked(H5Tenum_insert(type.get(), "TRUE", &yes), location, "create the type of bool");
  return type;
}

// h5py's representation of NumPy's float16, in the byte order of the 4-byte float `single`. HDF5 has no predefined one.
Hdf5Handle half_type(hid_t single, const Hdf5Location& location) {
  Hdf5Handle type = checked(H5Tcopy(single), H5Tclose, location, "create the type of float16");
  checked(H5Tset_fields(type.get(), 15, 10, 5, 0, 10), location, "create the type of float16");
  checked(H5Tset_size(type.get(), 2), location, "create the type of float16");
  checked(H5Tset_ebias(type.get(), 15), location, "create the type of float16");
  return type;
}

struct TypeRow {
  DType dtype;
  hid_t little, big, native;
};

// Not constexpr: HDF5 creates its types at run time.
std::array<TypeRow, 7> type_rows() {
  return {{{DType::kUint8, H5T_STD_U8LE, H5T_STD_U8BE, H5T_NATIVE_UINT8},
           {DType::kInt8, H5T_STD_I8LE, H5T_STD_I8BE, H5T_NATIVE_INT8},
           {DType::kInt16, H5T_STD_I16LE, H5T_STD_I16BE, H5T_NATIVE_INT16},
           {DType::kInt32, H5T_STD_I32LE, H5T_STD_I32BE, H5T_NATIVE_INT32},
           {DType::kInt64, H5T_STD_I64LE, H5T_STD_I64BE, H5T_NATIVE_INT64},
           {DType::kFloat32, H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_NATIVE_FLOAT},
           {DType::kFloat64, H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE}}};
}

Hdf5Handle copy_of(hid_t type, const Hdf5Location& location) {
  return checked(H5Tcopy(type), H5Tclose, location, "copy a type");
}

Hdf5Handle type_of(DType dtype, bool in_file, const Hdf5Location& location) {
  for (const TypeRow& row : type_rows())
    if (row.dtype == dtype) return copy_of(in_file ? row.little : row.native, location);
  if (dtype == DType::kFloat16) return half_type(in_file ? H5T_IEEE_F32LE : H5T_NATIVE_FLOAT, location);
  return bool_type(location);
}

DType dtype_of_dataset(hid_t dataset, const Hdf5Location& location) {
  const Hdf5Handle type = checked(H5Dget_type(dataset), H5Tclose, location, "read the dataset's type");
  for (const TypeRow& row : type_rows())
    if (H5Tequal(type.get(), row.little) > 0 || H5Tequal(type.get(), row.big) > 0) return row.dtype;
  if (H5Tequal(type.get(), bool_type(location).get()) > 0) return DType::kBool;
  for (const hid_t single : {H5T_IEEE_F32LE, H5T_IEEE_F32BE})
    if (H5Tequal(type.get(), half_type(single, location).get()) > 0) return DType::kFloat16;
  fail_at(location, "has an unsupported element type; supported are bool, uint8, int8 to int64, float16 to float64");
}

Shape shape_of_dataset(hid_t dataset, const Hdf5Location& location) {
  const Hdf5Handle space = checked(H5Dget_space(dataset), H5Sclose, location, "read the dataset's shape");
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind != H5S_SCALAR && kind != H5S_SIMPLE) fail_at(location, "holds no values");
  const int ndim = checked(H5Sget_simple_extent_ndims(space.get()), location, "read the dataset's shape");
  std::vector<hsize_t> dims(static_cast<std::size_t>(ndim));
  checked(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), location, "read the dataset's shape");
  return Shape(std::vector<std::int64_t>(dims.begin(), dims.end()));
}

void refuse_virtual(hid_t dataset, const Hdf5Location& location) {
  const Hdf5Handle properties =
      checked(H5Dget_create_plist(dataset), H5Pclose, location, "read the dataset's properties");
  if (H5Pget_layout(properties.get()) == H5D_VIRTUAL)
    fail_at(location, "is a virtual dataset, which is refused because it can point at any file");
}

// Chunks that were never written read as zeros. Their bytes are missing, but compression hides that.
void refuse_missing_chunks(hid_t dataset, const Shape& shape, const Hdf5Location& location) {
  const Hdf5Handle properties =
      checked(H5Dget_create_plist(dataset), H5Pclose, location, "read the dataset's properties");
  if (H5Pget_layout(properties.get()) != H5D_CHUNKED) return;
  std::vector<hsize_t> chunk(static_cast<std::size_t>(shape.ndim()));
  checked(H5Pget_chunk(properties.get(), shape.ndim(), chunk.data()), location, "read the size of a chunk");
  hsize_t needed = 1, written = 0;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const auto size = static_cast<hsize_t>(shape[axis]), step = chunk[static_cast<std::size_t>(axis)];
    needed *= (size + step - 1) / step;
  }
  const Hdf5Handle space = checked(H5Dget_space(dataset), H5Sclose, location, "read the dataset's shape");
  checked(H5Dget_num_chunks(dataset, space.get(), &written), location, "count the chunks");
  if (written < needed)
    fail_at(location, join_text("is short of data: ", written, " of its ", needed, " chunks were written"));
}

// The most bytes that the file can hold for this dataset. Refuses storage outside the file, and filters from plugins.
hsize_t storage_limit(hid_t dataset, const Hdf5Location& location) {
  const Hdf5Handle properties =
      checked(H5Dget_create_plist(dataset), H5Pclose, location, "read the dataset's properties");
  if (checked(H5Pget_external_count(properties.get()), location, "look for external storage") > 0)
    fail_at(location, "has external storage, which is refused because it can point at any file");
  const int filters = checked(H5Pget_nfilters(properties.get()), location, "count the filters");
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = checked(
        H5Pget_filter2(properties.get(), static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config),
        location, "read a filter");
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
      fail_at(location, join_text("is stored with filter ", filter,
                                  ", which is refused; supported are deflate, shuffle "
                                  "and fletcher32"));
  }
  const hsize_t stored = H5Dget_storage_size(dataset);
  return filters > 0 ? stored * kLargestCompression : stored;
}

void check_size(const ArrayHeader& type, hsize_t limit, const Hdf5Location& location) {
  if (!type.shape.is_known() || !is_possible(type.shape))
    fail_at(location, join_text("has the impossible shape ", type.shape));
  const auto bytes = static_cast<hsize_t>(type.shape.size()) * size_of(type.dtype);
  if (bytes > limit)
    fail_at(location, join_text("is short of data: shape ", type.shape, " of ", type.dtype, " needs ", bytes,
                                " bytes, but at most ", limit, " are stored"));
}

// Arrays are stored and digested as little-endian bytes, copied without conversion.
static_assert(std::endian::native == std::endian::little);

}  // namespace

std::pair<std::string_view, std::string_view> split_path(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);  // as h5py prints it
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

ArrayHeader header_of(const Hdf5Group& dataset) {
  const Hdf5Location& location = dataset.location();
  // First: to read the shape of a virtual dataset, HDF5 opens the files behind it.
  refuse_virtual(dataset.id(), location);
  ArrayHeader header{
      location.object, dtype_of_dataset(dataset.id(), location), shape_of_dataset(dataset.id(), location), {}};
  check_size(header, storage_limit(dataset.id(), location), location);
  refuse_missing_chunks(dataset.id(), header.shape, location);
  if (dataset.has_attribute(kDigest)) header.digest = dataset.read_text(kDigest);
  return header;
}

Hdf5Group open_dataset(const Hdf5Group& group, std::string_view path) {
  const auto [parent, name] = split_path(path);
  const Hdf5Group home = group.group(parent);
  Hdf5Group dataset(home.open(name), home.location_of(name));
  if (H5Iget_type(dataset.id()) != H5I_DATASET) fail_at(dataset.location(), "is not a dataset");
  return dataset;
}

ArrayHeader write_array(Hdf5File& file, const Hdf5Group& group, std::string_view path, const Array& value) {
  const auto [parent, name] = split_path(path);
  const Hdf5Group home = group.make_group(parent);
  const Hdf5Location location = home.location_of(name);
  const Hdf5Handle properties = checked(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, location, "create dataset properties");
  checked(H5Pset_obj_track_times(properties.get(), false), location, "turn off object times");
  checked(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER), location, "turn off fill values");
  checked(H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY), location, "reserve space");
  const std::vector<hsize_t> dims(value.shape().begin(), value.shape().end());
  const Hdf5Handle space = checked(
      dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
      H5Sclose, location, "create the dataset's shape");
  const Hdf5Group dataset(
      checked(H5Dcreate2(home.id(), std::string(name).c_str(), type_of(value.dtype(), true, location).get(),
                         space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
              H5Dclose, location, "create the dataset"),
      location);
  ArrayHeader header{location.object, value.dtype(), value.shape(),
                     file.write_contents(dataset, {value.raw(), value.bytes()})};
  dataset.write_text(kDigest, header.digest);
  return header;
}

Hdf5Handle memory_type(DType dtype, const Hdf5Location& location) { return type_of(dtype, false, location); }

void read_converted(const Hdf5Group& dataset, Array& value) {
  if (value.bytes() == 0) return;
  const Hdf5Handle type = memory_type(value.dtype(), dataset.location());
  checked(H5Dread(dataset.id(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.raw()), dataset.location(),
          "read the dataset");
}

std::optional<std::uint64_t> place_of_bytes(const Hdf5Group& dataset, const ArrayHeader& header) {
  const Hdf5Location& location = dataset.location();
  const Hdf5Handle properties =
      checked(H5Dget_create_plist(dataset.id()), H5Pclose, location, "read the dataset's properties");
  const Hdf5Handle type = checked(H5Dget_type(dataset.id()), H5Tclose, location, "read the dataset's type");
  const auto bytes = static_cast<hsize_t>(header.shape.size()) * size_of(header.dtype);
  if (H5Pget_layout(properties.get()) != H5D_CONTIGUOUS || H5Dget_storage_size(dataset.id()) != bytes ||
      (size_of(header.dtype) > 1 && H5Tget_order(type.get()) != H5T_ORDER_LE))
    return std::nullopt;
  const haddr_t address = H5Dget_offset(dataset.id());
  return address == HADDR_UNDEF ? std::nullopt : std::optional<std::uint64_t>(address);
}

}  // namespace syncline::io
