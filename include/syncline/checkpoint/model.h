// The structure of a checkpoint without the values, and the check that rejects another model's checkpoint.
#pragma once

#include <string>
#include <vector>

#include "syncline/dtype.h"
#include "syncline/shape.h"

#pragma GCC visibility push(default)
namespace syncline::io {

struct WeightSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

struct LayerSpec {
  std::string name;
  std::vector<WeightSpec> weights;
};

struct ModelSpec {
  std::vector<LayerSpec> layers;
  std::vector<WeightSpec> optimizer;
};

// Throws IoError that names `path` and the first difference: a layer, a weight, a dtype or a shape. Layers without
// weights (dropout, flatten) are ignored, as in Keras. Thread-safe.
void require_same_model(const std::string& path, const ModelSpec& found, const ModelSpec& expected);

// Throws ValueError for names that a file cannot hold: empty, with empty parts or NUL bytes, duplicate, or a weight's
// name that is also a group of other weights. `path` begins the text. save_checkpoint calls it. Thread-safe.
void check_names(const std::string& path, const ModelSpec& model);

}  // namespace syncline::io
#pragma GCC visibility pop
