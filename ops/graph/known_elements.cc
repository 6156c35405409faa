#include "ops/graph/known_elements.h"

#include <algorithm>
#include <unordered_map>

#include "base/convert.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"

namespace syncline {
namespace {

constexpr std::int64_t kMostElements = 64;  // of a shape or what is made from it
constexpr std::size_t kMostNodes = 1000;    // visited; the elements of further nodes count as unknown

class Finder {
 public:
  KnownElements find(const Expr& e) {
    if (!is_integer(e.dtype()) || !e.shape().is_known() || e.shape().size() > kMostElements) return {};
    if (const auto at = found_.find(&e.node()); at != found_.end()) return at->second;
    if (found_.size() >= kMostNodes) return {};
    found_[&e.node()];  // counts the node
    KnownElements known = compute(e);
    if (std::none_of(known.begin(), known.end(), [](const auto& element) { return element.has_value(); }))
      known.clear();
    return found_[&e.node()] = std::move(known);
  }

 private:
  KnownElements compute(const Expr& e) {
    if (std::vector<std::int64_t> numbers; read_numbers(e, numbers)) return {numbers.begin(), numbers.end()};
    const Node& node = e.node();
    if (e.op().view) return find(node.inputs[0]);
    if (e.op().known_elements == nullptr) return {};
    std::vector<KnownElements> known;
    for (const Expr& input : node.inputs) known.push_back(find(input));
    return e.op().known_elements(node.attrs.get(), node.inputs, known);
  }

  std::unordered_map<const Node*, KnownElements> found_;
};

}  // namespace

KnownElements known_elements(const Expr& e) { return Finder().find(e); }

bool read_numbers(const Expr& e, std::vector<std::int64_t>& numbers) {
  if (e.is<Fill>()) {
    const std::int64_t number = with_stored_dtype(
        e.dtype(), [&]<class T>(T) { return convert<std::int64_t>(convert<T>(e.attrs<Fill::Attrs>().value)); });
    numbers.insert(numbers.end(), static_cast<std::size_t>(e.shape().size()), number);
    return true;
  }
  if (!e.is<Constant>()) return false;
  const Array values = e.attrs<Constant::Attrs>().value->array.cast(DType::kInt64);
  numbers.insert(numbers.end(), values.values<std::int64_t>().begin(), values.values<std::int64_t>().end());
  return true;
}

}  // namespace syncline
