#include "tests/graphs/differences.h"

#include <algorithm>
#include <cmath>

#include "ops/graph/op.h"
#include "syncline/backend.h"
#include "syncline/session.h"
#include "tests/graphs/table.h"
#include "tests/graphs/ways.h"

namespace syncline::graphs {
namespace {

class Differences {
 public:
  // `moved` moves every floating value by up to 0.01, away from properties of a single point, such as a tie.
  explicit Differences(const Program& program, bool moved = false)
      : program_(program), moved_(moved), scope_(session_) {
    graph_ = build(program, {.open = false, .all_fed = true, .wide = true});
    for (const Input& input : program.inputs) at_.push_back(value_in(program, input, 0, true).copy());
    Random random(program.seed);
    for (Array& value : at_)
      if (moved && value.dtype() == DType::kFloat64)
        for (std::int64_t i = 0; i < value.size(); ++i) value.data<double>()[i] += 0.02 * (random.uniform() - 0.5);
  }

  std::string run() {
    if (!graph_.loss || stops_gradients({graph_.loss})) return {};
    const std::vector<Expr> gradients(graph_.outputs.begin() + static_cast<std::ptrdiff_t>(graph_.values),
                                      graph_.outputs.end());
    const std::vector<Array> analytic = step(gradients);
    loss_ = std::make_unique<Function>(graph_.inputs, std::vector<Expr>{graph_.loss});
    const double here = loss();
    if (!std::isfinite(here)) return {};
    Random random(program_.seed + 17);
    std::size_t number = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      if (!has_gradient(program_.inputs[i])) continue;
      const Array& gradient = analytic[number++];
      if (gradient.shape() != at_[i].shape())
        return join_text("the gradient of x", i, " has the shape ", gradient.shape(), ", wanted ", at_[i].shape());
      for (int k = 0; k < 4 && at_[i].size() > 0; ++k) {
        const std::int64_t element = at_[i].size() <= 4 ? k % at_[i].size() : random.below(at_[i].size());
        std::string found = compare(i, element, gradient.cast(DType::kFloat64).data<double>()[element], here);
        if (!found.empty()) return found;
      }
    }
    return {};
  }

 private:
  // With these ops the gradient differs from differences on purpose.
  static bool stops_gradients(const std::vector<Expr>& roots) {
    const auto nodes = nodes_under(roots);
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
      return node->op->name == "stop_gradient" || (node->op->name.starts_with("ctc_") && node->op->grad == nullptr) ||
             stops_gradients(body_of(Expr(node)));
    });
  }

  // NaN exceeds every limit.
  bool any_beyond(const std::vector<Expr>& values, double limit) {
    const std::vector<Array> computed = step(values);
    return std::any_of(computed.begin(), computed.end(), [&](const Array& value) {
      const Array wide = value.cast(DType::kFloat64);
      const auto numbers = wide.values<double>();
      return std::any_of(numbers.begin(), numbers.end(), [&](double v) { return !(std::abs(v) < limit); });
    });
  }

  // True if an op has an infinite derivative at its operand 0 (a square root, a quotient, a power), or if a value is
  // not finite, even one on which the loss does not depend.
  bool at_pole() {
    std::vector<Expr> near, all;
    for (const auto& node : nodes_under(std::vector<Expr>{graph_.loss})) {
      if (!body_of(Expr(node)).empty()) return true;  // values within bodies are unknown
      if (const Expr x = pole_input(*node)) near.push_back(x);
      if (Expr(node).dtype() == DType::kFloat64 && !node->op->leaf && !node->op->sparse) all.emplace_back(node);
    }
    if (any_beyond(all, INFINITY)) return true;
    for (const Array& value : step(near)) {
      const Array wide = value.cast(DType::kFloat64);
      if (std::any_of(wide.values<double>().begin(), wide.values<double>().end(),
                      [](double v) { return std::abs(v) < 1e-300; }))
        return true;
    }
    return false;
  }

  // The value that an op rounds or takes as an angle, else empty.
  static Expr stepped_in(const Node& node) {
    const std::string_view name = node.op->name;
    if (name == "floordiv" || name == "floormod") return node.inputs[0] / node.inputs[1];
    const bool steps =
        name == "round" || name == "sin" || name == "cos" || (name == "cast" && is_integer(node.outputs[0].dtype));
    return steps ? node.inputs[0] : Expr{};
  }

  // Differences fail if steps or periods are closer together than the two points, or if values are large.
  bool differences_are_blind() {
    std::vector<Expr> all, stepped;
    for (const auto& node : nodes_under(std::vector<Expr>{graph_.loss})) {
      for (const auto& inner : nodes_under(body_of(Expr(node))))
        if (stepped_in(*inner)) return true;  // values within bodies are unknown
      if (const Expr x = stepped_in(*node)) stepped.push_back(x);
      if (Expr(node).dtype() == DType::kFloat64 && !node->op->sparse) all.emplace_back(node);
    }
    return any_beyond(all, 1e7) || any_beyond(stepped, 1e3);
  }

  // True for programs of one line, whose kinks are known. With a bound or a threshold, relu's gradient at the kink is 0
  // for every alpha, as in TensorFlow.
  bool judges_kinks() const {
    if (program_.lines.size() != 1 || moved_) return false;
    const auto nodes = nodes_under(std::vector<Expr>{graph_.loss});
    const bool has_body =
        std::any_of(nodes.begin(), nodes.end(), [](const auto& n) { return !body_of(Expr(n)).empty(); });
    return !has_body && !is_bounded_relu();
  }
  bool is_bounded_relu() const {
    const Line& line = program_.lines[0];
    const std::string_view name = table()[static_cast<std::size_t>(line.entry)].name;
    if (name == "relu_tensors") return line.tape[0] == 0 && line.tape[1] > 0;
    return name == "relu" && (line.tape[1] > 1 || line.tape[3] != 0);
  }

  std::vector<Array> step(const std::vector<Expr>& outputs) {
    set_runs(outputs, 0);
    return Function(graph_.inputs, outputs)(at_);
  }

  double loss() {
    set_runs({graph_.loss}, 0);
    return (*loss_)(at_)[0].item();
  }
  double loss_at(std::size_t input, std::int64_t element, double value) {
    double& x = at_[input].data<double>()[element];
    const double before = std::exchange(x, value);
    const double result = loss();
    x = before;
    return result;
  }

  std::string compare(std::size_t input, std::int64_t element, double got, double here) {
    const double x = at_[input].data<double>()[element];
    if (!std::isfinite(x) || std::abs(x) > 100) return {};
    double steps[2] = {1e-5 * std::max(1.0, std::abs(x)), 0.25e-5 * std::max(1.0, std::abs(x))};
    double left[2], right[2];
    for (int k = 0; k < 2; ++k) {
      right[k] = (loss_at(input, element, x + steps[k]) - here) / steps[k];
      left[k] = (here - loss_at(input, element, x - steps[k])) / steps[k];
    }
    if (!std::isfinite(left[0] + right[0] + left[1] + right[1]) || (!std::isfinite(got) && at_pole())) return {};
    const double scale = std::max({1.0, std::abs(left[1]), std::abs(right[1]), 1e-3 * std::abs(here)});
    const double error = 2e-4 * scale;
    // The one-sided differences of a smooth function approach each other as the step shrinks.
    const bool smooth = std::abs(right[0] - left[0]) < error && std::abs(right[1] - left[1]) < error &&
                        std::abs(right[0] - right[1]) < error;
    const double wanted = (left[1] + right[1]) / 2;
    if (smooth) {
      if (std::abs(got - wanted) <= 2 * error || differences_are_blind()) return {};
      if (std::isfinite(got) && !moved_ && compare_with_differences(program_, true).empty()) return {};
      return join_text("the gradient of x", input, ", element ", element, ", is ", got, ", difference ", wanted);
    }
    // Compares only kinks with straight sides, not jumps, curves or steps that cross 0 from a point beside it.
    const bool straight = std::abs(right[0] - right[1]) < error && std::abs(left[0] - left[1]) < error;
    const bool across = x != 0 && std::abs(x) < steps[1];
    if (!straight || across || scale > 1e3 || !judges_kinks()) return {};
    if (got >= std::min(left[1], right[1]) - error && got <= std::max(left[1], right[1]) + error) return {};
    return join_text("the gradient of x", input, ", element ", element, ", is ", got, " at a kink, differences ",
                     left[1], " and ", right[1]);
  }

  const Program& program_;
  const bool moved_;
  Session session_{3};
  SessionScope scope_;
  Graph graph_;
  std::vector<Array> at_;
  std::unique_ptr<Function> loss_;
};

}  // namespace

std::string compare_with_differences(const Program& program, bool moved) {
  try {
    return Differences(program, moved).run();
  } catch (const InternalError&) {
    throw;
  } catch (const ValueError&) {  // a value that the program rejects
  } catch (const DTypeError&) {  // a function that rejects float64
  }
  return {};
}

}  // namespace syncline::graphs
