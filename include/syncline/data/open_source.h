// Data sets on disk as sources of rows (syncline/data/source.h). The first axis of every array is the rows.
//
//   IDX          plain: read in place. Gzipped: unpacked into memory
//   .npy         read in place, either byte order; Fortran order is refused, for its rows do not lie together
//   .npz         stored members (np.savez) are read in place, deflated ones (np.savez_compressed) unpacked into memory
//   HDF5         datasets at any depth: contiguous ones are read in place; of one in chunks, those that a row touches
//                are kept in memory, if they are no more than 64 MiB
//   CSV          read in place, through an index of 24 bytes for each 16 KiB of text that opening makes in one pass
//
// Every function throws IoError, in one line that names the file and the place, for what is missing, damaged or
// refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "syncline/data/source.h"

namespace syncline::io {

// A column made of one field of a CSV file, or of neighbouring ones: "pixel1" to "pixel784" give rows of shape (784,).
struct CsvColumn {
  std::string name;         // of the column
  std::string first, last;  // names of fields; without `last` it is one number a row
  DType dtype = DType::kFloat32;
};

struct CsvFormat {
  char delimiter = ',';
  bool header = true;  // the first line names the fields; without it they are called "0", "1", ...
  // Empty: each field is a column of float32 of its own.
  std::vector<CsvColumn> columns = {};
};

struct SourceOptions {
  // Which arrays to read, in this order: paths of data sets, members of an .npz, fields of a CSV. Empty: all there are,
  // of an HDF5 file those in its root. IDX and .npy hold one array: the name given here becomes its column's, otherwise
  // the file's name up to its first dot.
  std::vector<std::string> columns = {};
  // What is compressed as a whole is held as a whole, up to so many bytes; beyond, it is refused.
  std::size_t memory = std::size_t{1} << 30;
  CsvFormat csv = {};
};

// By what is in the file; what is none of the others is taken for CSV.
std::unique_ptr<Source> open_source(const std::string& path, const SourceOptions& options = {});

std::unique_ptr<Source> open_idx_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_npy_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_npz_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_hdf5_source(const std::string& path, const SourceOptions& options = {});
std::unique_ptr<Source> open_csv_source(const std::string& path, const SourceOptions& options = {});

}  // namespace syncline::io
