#include "syncline/checkpoint/model.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "io/files/refuse.h"

namespace syncline::io {
namespace {

[[noreturn]] void fail_other(const std::string& path, std::string_view difference) {
  refuse("checkpoint '", path, "' is of another model or optimizer: ", difference,
         "; resume with the options that it was saved with, or use another checkpoint");
}

void check_name(const std::string& path, const std::string& name) {
  bool bad = name.empty() || name.find('\0') != std::string::npos;
  for (std::size_t begin = 0; !bad && begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    bad = part.empty() || part == "." || part == "..";
    begin = end + 1;
  }
  if (bad) {
    std::string shown = name;
    std::replace(shown.begin(), shown.end(), '\0', '?');  // a NUL would end the message
    fail<ValueError>("save_checkpoint('", path, "'): '", shown,
                     "' is not a valid name of a layer or weight: use parts separated by single slashes");
  }
}

[[noreturn]] void fail_twice(const std::string& path, std::string_view name) {
  fail<ValueError>("save_checkpoint('", path, "'): the name '", name, "' occurs twice; make it unique");
}

template <class Item>
void check_unique(const std::string& path, const std::vector<Item>& items) {
  std::set<std::string_view> seen;
  for (const Item& item : items) {
    check_name(path, item.name);
    if (!seen.insert(item.name).second) fail_twice(path, item.name);
  }
}

// Slashes make groups: an array "a/b" cannot be beside a group "a/b", or beside another array "a/b/c".
void check_apart(const std::string& path, const std::set<std::string>& arrays, std::set<std::string> groups) {
  groups.insert(arrays.begin(), arrays.end());
  for (const std::string& array : arrays)
    if (const auto within = groups.lower_bound(array + '/'); within != groups.end() && within->starts_with(array + '/'))
      fail<ValueError>("save_checkpoint('", path, "'): the weight '", array, "' and '", *within,
                       "' cannot be in one file, because a slash makes a group; rename one of them");
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

void check_names(const std::string& path, const ModelSpec& model) {
  check_unique(path, model.layers);
  check_unique(path, model.optimizer);
  std::set<std::string> arrays, groups;
  for (const LayerSpec& layer : model.layers) {
    check_unique(path, layer.weights);
    groups.insert(layer.name + '/');
    for (const WeightSpec& weight : layer.weights)
      if (const std::string name = layer.name + '/' + weight.name; !arrays.insert(name).second) fail_twice(path, name);
  }
  check_apart(path, arrays, groups);
  arrays.clear();
  for (const WeightSpec& weight : model.optimizer) arrays.insert(weight.name);
  check_apart(path, arrays, {});
}

void require_same_model(const std::string& path, const ModelSpec& found, const ModelSpec& expected) {
  const std::vector<LayerSpec> file = with_weights(found.layers), model = with_weights(expected.layers);
  require_same_names(path, "layer", "model", file, model);
  for (std::size_t i = 0; i < file.size(); ++i)
    require_same_weights(path, join_text("model's layer '", model[i].name, "'"), file[i].weights, model[i].weights);
  require_same_weights(path, "optimizer", found.optimizer, expected.optimizer);
}

}  // namespace syncline::io
