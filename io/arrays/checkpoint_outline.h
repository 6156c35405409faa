// The outline of a checkpoint as JSON text: what .npz and .safetensors, which know arrays only, carry beside them so
// that a checkpoint can be made of them again. Layers and their weights in order, the optimizer's weights, the state.
#pragma once

#include <string>

#include "io/arrays/array_file.h"
#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

// Throws IoError naming `path` for names that are not UTF-8.
std::string outline_text(const std::string& path, const CheckpointSummary& summary);

// All of a file's arrays as a checkpoint. Without an outline a layer is what stands in a name before the last slash or
// dot ("dense_1" of "dense_1/kernel:0", "block.0" of "block.0.weight"), or the name itself. Throws IoError naming
// `path` if the outline is damaged or is of other arrays.
Checkpoint checkpoint_of(const std::string& path, ArrayFile& file);

}  // namespace syncline::io
