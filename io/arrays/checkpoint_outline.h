// The outline of a checkpoint as JSON text: layers and their weights in order, the optimizer's weights, the state.
// .npz and .safetensors files store arrays only. The outline beside the arrays makes them convertible to a checkpoint.
#pragma once

#include <string>

#include "io/arrays/array_file.h"
#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

// Throws IoError naming `path` for names that are not UTF-8.
std::string outline_text(const std::string& path, const CheckpointSummary& summary);

// All arrays of a file as a checkpoint. Without an outline, the layer of an array is its name up to the last slash or
// dot ("dense_1" of "dense_1/kernel:0", "block.0" of "block.0.weight"), or the whole name. Throws IoError naming `path`
// if the outline is damaged or does not match the arrays.
Checkpoint checkpoint_of(const std::string& path, ArrayFile& file);

}  // namespace syncline::io
