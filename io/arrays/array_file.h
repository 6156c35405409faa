// ArrayFile: reads the named arrays of a file of any known format, one at a time.
//
// Names are those of weights ("dense_1/kernel:0"), as `syncline ls` prints them. Weights of one file that share a name
// (in two layers, or in a layer and the optimizer) are called LAYER/NAME and optimizer/NAME.
//
// The file must not change while it is open. One thread at a time may use an object.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "syncline/array.h"
#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

struct ArrayEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

struct NamedArray {
  std::string name;
  Array value;
};

class ArrayFile {
 public:
  virtual ~ArrayFile() = default;

  // In the file's order; names are unique.
  const std::vector<ArrayEntry>& entries() const { return entries_; }
  // The values of entries()[index]. Throws IoError if they are damaged or refused.
  virtual Array read(std::size_t index) = 0;
  // The outline that turns the arrays into a checkpoint (io/arrays/checkpoint_outline.h); empty if there is none.
  const std::string& outline() const { return outline_; }
  // Whether the file also holds the architecture of a Keras model.
  virtual bool holds_model() const { return false; }

 protected:
  ArrayFile(std::vector<ArrayEntry> entries, std::string outline)
      : entries_(std::move(entries)), outline_(std::move(outline)) {}

 private:
  std::vector<ArrayEntry> entries_;
  std::string outline_;
};

// The array entries of a model, first its layers, then its optimizer. Throws IoError naming `path` if two arrays have
// the same name.
std::vector<ArrayEntry> entries_of(const std::string& path, const ModelSpec& model);

// Opens a checkpoint in Keras's layout, a .npz file or a .safetensors file; its first bytes say which. Throws IoError.
std::unique_ptr<ArrayFile> open_array_file(const std::string& path);

}  // namespace syncline::io
