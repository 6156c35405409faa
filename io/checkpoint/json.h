// The head of a checkpoint as JSON, for outlines (io/arrays/checkpoint_outline.h), `syncline ls --json` and resuming
// ranks:
//
//     {"model": "cnn", "version": "0.9", "metric": null, "notes": {...}, "state": {"epoch": 2, ...}}
//
// `state` is null if there is none. An infinite or NaN metric is a string, because JSON has no such numbers.
#pragma once

#include <nlohmann/json.hpp>

#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

nlohmann::ordered_json json_of(const CheckpointHead& head);
// Throws nlohmann's exceptions and IoError for other contents. Earlier versions wrote no version and no notes.
CheckpointHead head_of(const nlohmann::ordered_json& json);

}  // namespace syncline::io
