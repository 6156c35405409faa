// Data sets on disk as sources of rows (syncline/data/source.h). The first axis of every array is the rows.
//
//   IDX          plain: read in place; gzipped: unpacked into memory
//   .npy         read in place, either byte order; Fortran order is refused, because its rows are not contiguous
//   .npz         stored members (np.savez) are read in place, deflated ones (np.savez_compressed) unpacked into memory
//   HDF5         datasets at any depth; contiguous ones are read in place; of a chunked one, the chunks that a row
//                touches are kept in memory if they take no more than 64 MiB
//   CSV          read in place, through an index of 24 bytes for each 16 KiB of text; opening builds it in one pass
//
// Every function throws IoError, one line that names the file and the place, for anything missing, damaged or refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "syncline/data/source.h"

#pragma GCC visibility push(default)
namespace syncline::io {

// A column made of one field of a CSV file, or of adjacent ones: "pixel1" to "pixel784" give rows of shape (784,).
struct CsvColumn {
  std::string name;         // of the column
  std::string first, last;  // names of fields; without `last` one number per row
  DType dtype = DType::kFloat32;
};

struct CsvFormat {
  char delimiter = ',';
  bool header = true;  // the first line names the fields; without it they are called "0", "1", ...
  // Empty: each field is a float32 column.
  std::vector<CsvColumn> columns = {};
};

struct SourceOptions {
  // The arrays to read, in this order: paths of datasets, members of an .npz, fields of a CSV. Empty: all; of an HDF5
  // file those in its root. IDX and .npy hold one array: this names its column (default: the file's name up to its
  // first dot).
  std::vector<std::string> columns = {};
  // Data compressed as a whole is held in memory up to this many bytes; larger data is refused.
  std::size_t memory = std::size_t{1} << 30;
  CsvFormat csv = {};
};

// Detects the format by the file's content; CSV if no other format matches.
std::unique_ptr<Source> open_source(const std::string& path, const SourceOptions& options = {});

std::unique_ptr<Source> open_idx_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_npy_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_npz_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_hdf5_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_csv_source(const std::string& path, const SourceOptions& options = {});

}  // namespace syncline::io
#pragma GCC visibility pop
