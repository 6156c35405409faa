// HDF5 source: datasets stored as in memory are read directly from the file, at the offset that HDF5 gives. Other
// datasets (chunked or big-endian) are read through HDF5.
#include <optional>
#include <utility>

#include "io/arrays/npy.h"
#include "io/data/row_file.h"
#include "io/hdf5/array.h"
#include "syncline/data/open_source.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::size_t kLargestChunks = std::size_t{64} << 20;  // cached per dataset

Hdf5File open_file(const std::string& path) { return Hdf5File::open(path, "data file"); }

// The bytes of all chunks that one row touches; 0 for a dataset without chunks, and on overflow.
std::size_t row_of_chunks(const Hdf5Group& dataset, const ArrayHeader& header) {
  const Hdf5Location& location = dataset.location();
  const Hdf5Handle properties =
      checked(H5Dget_create_plist(dataset.id()), H5Pclose, location, "read the dataset's properties");
  if (H5Pget_layout(properties.get()) != H5D_CHUNKED) return 0;
  std::vector<hsize_t> chunk(header.shape.dims().size());
  checked(H5Pget_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()), location,
          "read the chunks' shape");
  std::size_t bytes = size_of(header.dtype) * chunk[0];
  for (std::size_t i = 1; i < chunk.size(); ++i) {
    const auto dim = static_cast<hsize_t>(header.shape.dims()[i]);
    if (__builtin_mul_overflow(bytes, (dim + chunk[i] - 1) / chunk[i] * chunk[i], &bytes)) return 0;
  }
  return bytes;
}

// Opens a dataset with a cache for one row of chunks: HDF5 unpacks an uncached chunk again for each read. No other
// handle of the dataset may be open, or HDF5 would keep its old cache.
Hdf5Handle open_with_chunks(const Hdf5File& file, const Hdf5Location& location, std::size_t bytes) {
  constexpr std::size_t kSlots = 10007;  // prime, and many per chunk
  const Hdf5Handle access = checked(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, location, "create access properties");
  if (bytes > 0 && bytes <= kLargestChunks)
    checked(H5Pset_chunk_cache(access.get(), kSlots, bytes, H5D_CHUNK_CACHE_W0_DEFAULT), location,
            "set the size of the chunk cache");
  return checked(H5Dopen2(file.root().id(), location.object.c_str(), access.get()), H5Dclose, location,
                 "open the dataset");
}

// Holds the HDF5 lock while it reads, because another thread may save a checkpoint.
class DatasetSource : public Source {
 public:
  DatasetSource(Column column, std::int64_t rows, Hdf5Location location, std::size_t chunks)
      : Source({std::move(column)}, rows), location_(std::move(location)) {
    const Hdf5Session session;
    open_.emplace(open_file(location_.file));
    open_->dataset = open_with_chunks(open_->file, location_, chunks);
    open_->space = checked(H5Dget_space(open_->dataset.get()), H5Sclose, location_, "read the dataset's shape");
    open_->type = memory_type(columns()[0].dtype, location_);
  }
  ~DatasetSource() override {
    const Hdf5Session session;
    open_.reset();
  }

  void read_run(std::int64_t begin, std::int64_t count, std::span<Array> targets, std::int64_t at) override {
    const std::span<std::byte> target = row_span(targets[0], at, count);
    if (target.empty()) return;
    const Hdf5Session session;
    const Shape shape = columns()[0].shape_of(count);
    const std::vector<hsize_t> extent(shape.begin(), shape.end());
    std::vector<hsize_t> start(extent.size(), 0);
    start[0] = static_cast<hsize_t>(begin);
    checked(H5Sselect_hyperslab(open_->space.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
            location_, "select rows");
    const Hdf5Handle memory = checked(H5Screate_simple(shape.ndim(), extent.data(), nullptr), H5Sclose, location_,
                                      "create the shape of the rows");
    if (H5Dread(open_->dataset.get(), open_->type.get(), memory.get(), open_->space.get(), H5P_DEFAULT, target.data()) <
        0)
      fail_hdf5(location_, join_text("read rows ", begin, " to ", begin + count - 1));
    check_bools(location_.file, columns()[0].name, targets[0].rows(at, at + count));
  }

 private:
  struct Open {
    explicit Open(Hdf5File opened) : file(std::move(opened)) {}
    Hdf5File file;
    Hdf5Handle dataset, space, type;
  };
  Hdf5Location location_;
  std::optional<Open> open_;  // optional, to close it under the lock
};

std::vector<std::string> datasets_of(const Hdf5Group& root) {
  std::vector<std::string> names;
  for (const std::string& name : root.links())
    if (H5Iget_type(root.open(name).get()) == H5I_DATASET) names.push_back(name);
  if (names.empty())
    fail_at(root.location(), "holds no dataset outside its groups; give the names of the datasets to read");
  return names;
}

std::unique_ptr<Source> dataset_source(const Hdf5File& file, const std::string& name) {
  std::optional<Hdf5Group> dataset = open_dataset(file.root(), name);
  const Hdf5Location location = dataset->location();
  const ArrayHeader header = header_of(*dataset);
  if (header.shape.ndim() == 0) fail_at(location, "is a scalar and has no rows");
  const std::int64_t rows = header.shape[0];
  Column column{name, header.dtype, row_shape(location.file, header.dtype, header.shape)};
  if (const std::optional<std::uint64_t> address = place_of_bytes(*dataset, header)) {
    std::vector<RowFile> files;
    files.push_back({std::move(column), rows, open_random_access_file(location.file), *address, false});
    return row_file_source(location.file, std::move(files));
  }
  const std::size_t chunks = row_of_chunks(*dataset, header);
  dataset.reset();  // see open_with_chunks
  return std::make_unique<DatasetSource>(std::move(column), rows, location, chunks);
}

}  // namespace

std::unique_ptr<Source> open_hdf5_source(const std::string& path, const SourceOptions& options) {
  const Hdf5Session session;  // outlives all handles
  const Hdf5File file = open_file(path);
  std::vector<std::unique_ptr<Source>> sources;
  for (const std::string& name : options.columns.empty() ? datasets_of(file.root()) : options.columns) {
    const Source& source = *sources.emplace_back(dataset_source(file, name));
    if (source.rows() != sources[0]->rows())
      fail_at(file.root().location_of(name),
              join_text("has ", source.rows(), " rows, but '", sources[0]->columns()[0].name, "' has ",
                        sources[0]->rows(), "; give datasets with equal numbers of rows"));
  }
  return join_sources(std::move(sources));
}

}  // namespace syncline::io
