// The head of a checkpoint as JSON, for outlines (io/arrays/checkpoint_outline.h), `syncline ls --json` and resuming
// ranks:
//
//     {"model": "cnn", "version": "0.9", "metric": null, "notes": {...}, "state": {"epoch": 2, ...}}
//
// `state` is null where there is none. An infinite or NaN metric, which JSON does not know, is a text.
#pragma once

#include <nlohmann/json.hpp>

#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

nlohmann::ordered_json json_of(const CheckpointHead& head);
// Throws nlohmann's exceptions and IoError for what is of another kind. Earlier versions wrote no version and no notes.
CheckpointHead head_of(const nlohmann::ordered_json& json);

}  // namespace syncline::io
