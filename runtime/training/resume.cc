#include "syncline/training/resume.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/checkpoint/json.h"
#include "syncline/checkpoint/folder.h"
#include "syncline/error.h"
#include "syncline/session.h"
#include "syncline/training/first_rank.h"

namespace syncline::training {
namespace {

using json = nlohmann::ordered_json;

std::optional<io::FolderLoad> load(const std::string& path) {
  std::error_code missing;
  if (std::filesystem::is_regular_file(path, missing))
    return io::FolderLoad{io::load_checkpoint(path, io::KerasFiles::kRefused), path, {}};
  return io::CheckpointFolder(path).load();
}

// Runs `action` on rank 0. If it throws, all ranks throw IoError with its message.
template <class Action>
void succeed_on_first_rank(comm::Communicator* communicator, Action action) {
  std::string error;
  try {
    if (is_first(communicator)) action();
  } catch (const std::exception& e) {
    error = e.what();
  }
  error = as_first_rank_says(communicator, "whether rank 0 has read the checkpoint", std::move(error));
  if (!error.empty()) throw IoError(error);
}

void append(std::vector<Array>& values, const std::vector<io::Weight>& weights) {
  for (const io::Weight& weight : weights) values.push_back(weight.value);
}

}  // namespace

FoundCheckpoint::FoundCheckpoint(std::string path, io::Checkpoint checkpoint, comm::Communicator* communicator)
    : path_(std::move(path)), checkpoint_(std::move(checkpoint)), communicator_(communicator) {}

void FoundCheckpoint::resume(const SavedModel& model, Fit& fit) {
  const std::vector<io::Weight> parts = take_parts(checkpoint_, model);
  succeed_on_first_rank(communicator_,
                        [&] { io::require_same_model(path_, io::spec_of(checkpoint_), spec_of(model)); });
  std::vector<Array> values;
  for (const io::Layer& layer : checkpoint_.layers) append(values, layer.weights);
  append(values, checkpoint_.optimizer);
  if (!is_first(communicator_))
    for (const Variable& v : variables_of(model)) values.push_back(Array::uninitialized(v.dtype(), v.shape()));
  for (Array& value : values) copy_from_first_rank(communicator_, "a checkpoint's values", value.raw(), value.bytes());
  restore(path_, checkpoint_, values, model, fit);
  if (communicator_ != nullptr && communicator_->size() > 1 && is_divided(model))
    restore_parts(parts, model, *communicator_);
  checkpoint_.layers.clear();
  checkpoint_.optimizer.clear();
}

std::unique_ptr<FoundCheckpoint> find_checkpoint(const std::string& path, comm::Communicator* communicator) {
  std::optional<io::FolderLoad> found;
  succeed_on_first_rank(communicator, [&] { found = load(path); });
  json text;
  if (found) text = {{"path", found->path}, {"head", io::json_of(found->checkpoint)}};
  text = json::parse(as_first_rank_says(communicator, "where the checkpoint stands",
                                        text.dump(-1, ' ', false, json::error_handler_t::replace)));
  if (text.is_null()) return nullptr;
  if (!found) found = io::FolderLoad{{io::head_of(text["head"]), {}, {}}, text["path"].get<std::string>(), {}};
  if (!found->warning.empty()) fmt::print(stderr, "syncline: {}\n", found->warning);
  Session::current().set_seed(found->checkpoint.state.seed);
  return std::make_unique<FoundCheckpoint>(found->path, std::move(found->checkpoint), communicator);
}

}  // namespace syncline::training
