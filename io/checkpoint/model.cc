#include "syncline/checkpoint/model.h"

#include <algorithm>
#include <string_view>

#include "io/files/refuse.h"

namespace syncline::io {
namespace {

[[noreturn]] void fail_other(const std::string& path, std::string_view difference) {
  refuse("checkpoint '", path, "' is of another model or optimizer: ", difference,
         "; resume with the options that it was saved with, or use another checkpoint");
}

std::string describe(const WeightSpec& weight) { return join_text(weight.dtype, " ", weight.shape); }

// Compares two lists by name. For messages, `kind` names an element and `owner` the owner of the list.
template <class Item>
void require_same_names(const std::string& path, std::string_view kind, std::string_view owner,
                        const std::vector<Item>& found, const std::vector<Item>& expected) {
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    if (i >= found.size())
      fail_other(path, join_text(kind, " '", expected[i].name, "' of the ", owner, " is missing in the file"));
    if (i >= expected.size())
      fail_other(path,
                 join_text("the file has the ", kind, " '", found[i].name, "', which the ", owner, " does not have"));
    if (found[i].name != expected[i].name)
      fail_other(path, join_text(kind, " ", i, " is '", found[i].name, "' in the file, '", expected[i].name,
                                 "' in the ", owner));
  }
}

void require_same_weights(const std::string& path, std::string_view owner, const std::vector<WeightSpec>& found,
                          const std::vector<WeightSpec>& expected) {
  require_same_names(path, "weight", owner, found, expected);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].dtype != expected[i].dtype || found[i].shape != expected[i].shape)
      fail_other(path, join_text("weight '", found[i].name, "' is ", describe(found[i]), " in the file, ",
                                 describe(expected[i]), " in the ", owner));
}

std::vector<LayerSpec> with_weights(const std::vector<LayerSpec>& layers) {
  std::vector<LayerSpec> kept;
  for (const LayerSpec& layer : layers)
    if (!layer.weights.empty()) kept.push_back(layer);
  return kept;
}

}  // namespace

void require_same_model(const std::string& path, const ModelSpec& found, const ModelSpec& expected) {
  const std::vector<LayerSpec> file = with_weights(found.layers), model = with_weights(expected.layers);
  require_same_names(path, "layer", "model", file, model);
  for (std::size_t i = 0; i < file.size(); ++i)
    require_same_weights(path, join_text("model's layer '", model[i].name, "'"), file[i].weights, model[i].weights);
  require_same_weights(path, "optimizer", found.optimizer, expected.optimizer);
}

}  // namespace syncline::io
