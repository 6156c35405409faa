// Detects the format of a file, and opens the formats with rows of fixed width.
#include "syncline/data/open_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <string_view>
#include <utility>

#include "io/arrays/npy.h"
#include "io/arrays/npz.h"
#include "io/data/idx.h"
#include "io/data/row_file.h"
#include "io/files/refuse.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

std::string column_name(const std::string& path, const SourceOptions& options) {
  if (options.columns.size() > 1)
    fail<ValueError>("data file '", path, "': holds one array, but ", options.columns.size(), " columns are requested");
  if (options.columns.size() == 1) return options.columns[0];
  const std::string name = std::filesystem::path(path).filename();
  return name.substr(0, name.find('.'));
}

RowFile npy_rows(std::string name, std::unique_ptr<RandomAccessFile> file) {
  std::vector<std::byte> begin(std::min<std::uint64_t>(kLongestNpyHeader, file->size()));
  file->read(0, begin);
  const std::string place = join_text("data file '", file->path(), "'");
  const NpyHeader header = parse_npy_header(place, begin);
  if (header.fortran && header.shape.ndim() > 1)
    refuse(place, ": is in Fortran order, so its rows are not contiguous; save numpy.ascontiguousarray(array)");
  return make_row_file(std::move(name), header.dtype, header.shape, std::move(file), header.bytes, header.swapped);
}

}  // namespace

std::unique_ptr<Source> open_idx_source(const std::string& path, const SourceOptions& options) {
  const std::string name = column_name(path, options);
  const IdxHeader header = read_idx_header(path);
  if (!header.compressed) {
    std::vector<RowFile> files;
    files.push_back(make_row_file(name, header.dtype, header.shape, open_random_access_file(path), header.bytes,
                                  std::endian::native == std::endian::little && size_of(header.dtype) > 1));
    return row_file_source(path, std::move(files));
  }
  row_shape(path, header.dtype, header.shape);
  // No overflow: row_shape has checked the shape.
  const std::size_t bytes = static_cast<std::size_t>(header.shape.size()) * size_of(header.dtype);
  if (bytes > options.memory)
    fail<IoError>("data file '", path, "': is gzipped, so its ", bytes, " bytes must be held in memory, but only ",
                  options.memory, " are allowed; unpack it with gunzip");
  return array_source({{name, read_idx(path)}});
}

std::unique_ptr<Source> open_npy_source(const std::string& path, const SourceOptions& options) {
  std::vector<RowFile> files;
  files.push_back(npy_rows(column_name(path, options), open_random_access_file(path)));
  return row_file_source(path, std::move(files));
}

std::unique_ptr<Source> open_npz_source(const std::string& path, const SourceOptions& options) {
  std::vector<RowFile> files;
  for (NpzMember& member : open_npz_members(path, options.columns, options.memory))
    files.push_back(npy_rows(std::move(member.name), std::move(member.file)));
  return row_file_source(path, std::move(files));
}

std::unique_ptr<Source> open_source(const std::string& path, const SourceOptions& options) {
  std::array<char, 8> bytes{};
  const auto file = open_random_access_file(path);
  const std::string_view begin(bytes.data(), std::min<std::uint64_t>(bytes.size(), file->size()));
  file->read(0, std::as_writable_bytes(std::span(bytes)).first(begin.size()));
  if (begin.starts_with("\x93NUMPY")) return open_npy_source(path, options);
  if (begin.starts_with("PK\3\4") || begin.starts_with("PK\5\6")) return open_npz_source(path, options);
  if (begin.starts_with("\x89HDF")) return open_hdf5_source(path, options);
  if (begin.starts_with("\x1f\x8b") || begin.starts_with(std::string_view("\0\0", 2)))
    return open_idx_source(path, options);
  return open_csv_source(path, options);
}

}  // namespace syncline::io
