// Loops and branches with bodies of random lines.
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

Built map_line(Choices& c) {
  const Expr x = c.operand("x", c.integer("type", 0, 4) == 0 ? Type::kAny : Type::kFloating, 1, 3);
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {}); };
  return SYNCLINE_MADE(map_fn([&](const Expr& e) { return body({e})[0]; }, x));
}

Built map_of_two_line(Choices& c) {
  const Expr x = c.floating("x", 1, 3);
  const Expr y = c.like("y", x);
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {a[0], a[1]}); };
  return SYNCLINE_MADE(map_fn([&](const std::vector<Expr>& e) { return body(e); }, std::vector<Expr>{x, y}));
}

Built fold_line(Choices& c) {
  const Expr x = c.floating("x", 1, 3);
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {a[0]}); };
  switch (c.integer("way", 0, 3)) {
    case 0: return SYNCLINE_MADE(foldl([&](const Expr& s, const Expr& e) { return body({s, e})[0]; }, x));
    case 1: return SYNCLINE_MADE(foldr([&](const Expr& s, const Expr& e) { return body({s, e})[0]; }, x));
    default: {
      const Expr first = c.floating("first", 0, 2);
      return SYNCLINE_MADE(foldl([&](const Expr& s, const Expr& e) { return body({s, e})[0]; }, x, first));
    }
  }
}

// A cell over inputs (samples, time, features) with a state (samples, units).
Built rnn_line(Choices& c) {
  const Expr x = c.floating("x", 3, 4);
  const auto units = c.integer("units", 1, 4);
  const Expr state = c.of_meta("state", {x.dtype(), Shape{x.shape()[0], units}});
  const bool backwards = c.flag("backwards"), unroll = c.integer("unroll", 0, 4) == 0;
  c.call("unroll", unroll ? "true" : "false");
  c.call("backwards", backwards ? "true" : "false");
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {a[0]}); };
  RnnOptions options{.go_backwards = backwards, .unroll = unroll};
  std::string text = ".go_backwards = backwards, ";
  if (c.integer("masked", 0, 3) == 0) {
    options.mask = c.fresh("mask", DType::kBool, Shape{x.shape()[0], x.shape()[1]}, Pool::kTies);
    text += ".mask = mask, ";
  }
  std::string more;
  if (c.integer("constant", 0, 3) == 0) {  // follows the states
    options.constants = {c.floating("own", 0, 2)};
    text += ".constants = {own}, ";
    more = ", s[1]";
  }
  const RnnResult result = rnn(
      [&](const Expr& e, const std::vector<Expr>& s) {
        const Expr next = body(s.size() > 1 ? std::vector<Expr>{s[0], e, s[1]} : std::vector<Expr>{s[0], e})[0];
        return std::pair<Expr, std::vector<Expr>>{next, {next}};
      },
      x, {state}, options);
  const auto which = c.integer("which", 0, 1);
  return c.made(which == 0 ? result.outputs : result.last_output,
                "rnn([&](const Expr& e, const std::vector<Expr>& s) { const Expr next = body({s[0], e" + more +
                    "})[0]; return std::pair<Expr, std::vector<Expr>>{next, {next}}; }, x, {state}, {" + text +
                    ".unroll = unroll})" + (which == 0 ? ".outputs" : ".last_output"));
}

// Like Keras's SimpleRNN. The plan computes the product of the inputs outside the loop.
Built simple_rnn_line(Choices& c) {
  const Expr x = c.floating("x", 3, 3);
  const auto units = c.integer("units", 1, 5);
  const Expr state = c.of_meta("state", {x.dtype(), Shape{x.shape()[0], units}});
  const Expr w = c.of_meta("w", {x.dtype(), Shape{x.shape()[2], units}});
  const Expr u = c.of_meta("u", {x.dtype(), Shape{units, units}});
  if (c.flag("averages"))
    return SYNCLINE_MADE(rnn(
                             [&](const Expr& e, const std::vector<Expr>& s) {
                               const Expr h = tanh(dot(e, w) + dot(s[0], u) + mean(s[0], {0}));
                               return std::pair<Expr, std::vector<Expr>>{h, {h}};
                             },
                             x, {state})
                             .outputs);
  return SYNCLINE_MADE(rnn(
                           [&](const Expr& e, const std::vector<Expr>& s) {
                             const Expr h = tanh(dot(e, w) + dot(s[0], u));
                             return std::pair<Expr, std::vector<Expr>>{h, {h}};
                           },
                           x, {state})
                           .outputs);
}

// The state is a statistic of the batch, so ranks communicate in each iteration.
Built statistic_rnn_line(Choices& c) {
  const Expr x = c.floating("x", 3, 3);
  const Expr state = c.of_meta("state", {x.dtype(), Shape{x.shape()[2]}});
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {a[0]}); };
  const RnnStep cell = [&](const Expr& e, const std::vector<Expr>& s) {
    const Expr h = body({e, s[0]})[0];
    return std::pair<Expr, std::vector<Expr>>{h, {mean(h, {0})}};
  };
  const RnnResult result = rnn(cell, x, {state});
  const bool outputs = c.flag("outputs");
  return c.made(outputs ? result.outputs : result.new_states[0],
                "rnn([&](const Expr& e, const std::vector<Expr>& s) { const Expr h = body({e, s[0]})[0]; return "
                "std::pair<Expr, std::vector<Expr>>{h, {mean(h, {0})}}; }, x, {state})" +
                    std::string(outputs ? ".outputs" : ".new_states[0]"));
}

Built switch_line(Choices& c) {
  const Expr x = c.operand("x", Type::kAny, 0, 3);
  const Expr y = c.like("y", x);
  if (c.integer("rows", 0, 2) == 0 && x.ndim() > 0) {
    const Expr condition = c.of_shape("condition", Type::kBool, Shape{x.shape()[0]});
    return SYNCLINE_MADE(switch_(condition, x, y));
  }
  const Expr condition = c.of_shape("condition", Type::kBool, Shape{});
  return SYNCLINE_MADE(switch_(condition, x, y));
}

Built branch_line(Choices& c) {
  const Expr condition = c.of_shape("condition", Type::kBool, Shape{});
  const Expr x = c.floating("x", 0, 3);
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {a[0]}); };
  const auto other = [&](const std::vector<Expr>& a) { return c.body(1, a, {a[0]}); };
  return SYNCLINE_MADE(switch_(
      condition, [&] { return body({x})[0]; }, [&] { return other({x})[0]; }));
}

Built several_line(Choices& c) {
  const Expr condition = c.of_shape("condition", Type::kBool, Shape{});
  const Expr x = c.floating("x", 0, 3), y = c.operand("y", Type::kAny, 0, 3);
  const auto body = [&](const std::vector<Expr>& a) { return c.body(0, a, {a[0], a[1]}); };
  const auto other = [&](const std::vector<Expr>& a) { return c.body(1, a, {a[0], a[1]}); };
  return SYNCLINE_MADE(switch_(
      condition,
      [&] {
        return body({x, y});
      },
      [&] {
        return other({x, y});
      }));
}

Built phase_line(Choices& c) {
  const Expr x = c.operand("x", Type::kAny, 0, 3);
  const Expr y = c.like("y", x);
  if (c.flag("drop") && is_floating(x.dtype())) return SYNCLINE_MADE(in_train_phase(x * 2.0, y));
  if (c.flag("test")) return SYNCLINE_MADE(in_test_phase(x, y));
  return SYNCLINE_MADE(in_train_phase(x, y));
}

}  // namespace

std::vector<Entry> control_entries() {
  return {{"map_fn", &map_line, 5, 1},
          {"map_fn_of_two", &map_of_two_line, 2, 1},
          {"fold", &fold_line, 5, 1},
          {"rnn", &rnn_line, 6, 1},
          {"simple_rnn", &simple_rnn_line, 6, 0},
          {"statistic_rnn", &statistic_rnn_line, 2, 0},
          {"switch", &switch_line, 5},
          {"branch", &branch_line, 5, 1},
          {"several", &several_line, 3, 1},
          {"in_train_phase", &phase_line, 3, 1}};
}

std::vector<Entry> other_entries() {
  return {{"large_variable",
           [](Choices& c) {
             const Expr x = c.exactly("x", {.kind = Input::kVariable, .dtype = c.floatx(), .shape = {130, 130}});
             return SYNCLINE_MADE(x * 0.9);
           },
           3, 0},
          {"print_tensor",
           [](Choices& c) {
             const Expr x = c.operand("x", Type::kAny, 0, 2);
             return SYNCLINE_MADE(print_tensor(x, "x = "));
           },
           3, 0}};
}

}  // namespace syncline::graphs
