// The fields of a checkpoint besides its arrays, each listed once. All code that writes, reads, prints or sends fields
// uses these two lists: HDF5 attributes, the outline of other formats, `syncline ls`, a resumed training.
//
// `value` has one of five types: std::int64_t (never negative), std::uint64_t, std::string, std::optional<double>, and
// std::map<std::string, std::string>. A visitor that lacks a new type does not compile.
#pragma once

namespace syncline::io {

// Calls visit(name, value) for each field of a TrainingState. Every file with a state has all of them.
void for_each_state_field(auto& state, auto visit) {
  visit("epoch", state.epoch);
  visit("step", state.step);
  visit("global_step", state.global_step);
  visit("seed", state.seed);
  visit("random_step", state.random_step);
  visit("batch", state.batch);
  visit("samples", state.samples);
}

// Calls visit(name, value, required) for each other field of a CheckpointHead. Files may lack fields not `required`.
void for_each_head_field(auto& head, auto visit) {
  visit("model", head.model, true);
  visit("version", head.version, false);
  visit("metric", head.metric, false);
  visit("notes", head.notes, false);
}

}  // namespace syncline::io
