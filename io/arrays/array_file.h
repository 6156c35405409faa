// ArrayFile: the named arrays of a file, read one at a time, whatever its format.
//
// Names are those of weights ("dense_1/kernel:0"), as `syncline ls` prints them. Where two weights of a file have the
// same name (one in each of two layers, or one of the optimizer's), they are called LAYER/NAME and optimizer/NAME.
//
// A file must not change while it is open. An object is used by one thread at a time.
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
  // The values of entries()[index]. Throws IoError for what is damaged or refused.
  virtual Array read(std::size_t index) = 0;
  // What makes a checkpoint of the arrays (io/arrays/checkpoint_outline.h); empty if the file has none.
  const std::string& outline() const { return outline_; }
  // Whether the file also holds a model of Keras: an architecture, which is no array.
  virtual bool holds_model() const { return false; }

 protected:
  ArrayFile(std::vector<ArrayEntry> entries, std::string outline)
      : entries_(std::move(entries)), outline_(std::move(outline)) {}

 private:
  std::vector<ArrayEntry> entries_;
  std::string outline_;
};

// What the arrays of a model are called, in the order of its layers and then of its optimizer. Throws IoError naming
// `path` if they cannot be told apart.
std::vector<ArrayEntry> entries_of(const std::string& path, const ModelSpec& model);

// Opens a checkpoint in Keras's layout, a .npz file or a .safetensors file; its first bytes say which. Throws IoError.
std::unique_ptr<ArrayFile> open_array_file(const std::string& path);

}  // namespace syncline::io
