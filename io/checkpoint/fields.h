// What a checkpoint holds beside its arrays, each field once. Everything that writes, reads, prints or sends fields
// goes by these two lists: HDF5's attributes, the outline of other formats, `syncline ls`, a resumed training.
//
// `value` has one of five types: std::int64_t (never negative), std::uint64_t, std::string, std::optional<double>, and
// std::map<std::string, std::string>. A new type is a compile error wherever it is not known.
#pragma once

namespace syncline::io {

// Calls visit(name, value) for each field of a TrainingState. All of them are in every file with a state.
void for_each_state_field(auto& state, auto visit) {
  visit("epoch", state.epoch);
  visit("step", state.step);
  visit("global_step", state.global_step);
  visit("seed", state.seed);
  visit("random_step", state.random_step);
  visit("batch", state.batch);
  visit("samples", state.samples);
}

// The same for the other fields of a CheckpointHead. Files may lack those that are not `required`.
void for_each_head_field(auto& head, auto visit) {
  visit("model", head.model, true);
  visit("version", head.version, false);
  visit("metric", head.metric, false);
  visit("notes", head.notes, false);
}

}  // namespace syncline::io
