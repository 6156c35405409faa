#include "tests/graphs/shrink.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "syncline/session.h"
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

using ForRef = std::function<void(Ref&)>;

void each_ref(std::vector<Line>& lines, const ForRef& f) {
  for (Line& line : lines) {
    for (Ref& ref : line.operands) f(ref);
    for (Body& body : line.bodies) {
      each_ref(body.lines, f);
      for (Ref& ref : body.results) f(ref);
    }
  }
}

void each_ref(Program& program, const ForRef& f) {
  each_ref(program.lines, f);
  for (Ref& ref : program.outputs) f(ref);
  for (NewValue& u : program.updates) f(u.value);
}

// Removes lines and inputs that nothing reads.
Program without_dead(Program program) {
  for (int i = static_cast<int>(program.lines.size()) - 1; i >= 0; --i) {
    bool used = false;
    each_ref(program, [&](Ref& ref) { used = used || (ref.scope == Ref::kLine && ref.line == i); });
    if (used) continue;
    program.lines.erase(program.lines.begin() + i);
    each_ref(program, [&](Ref& ref) { ref.line -= ref.scope == Ref::kLine && ref.line > i; });
  }
  for (int i = static_cast<int>(program.inputs.size()) - 1; i >= 0; --i) {
    bool used =
        std::any_of(program.updates.begin(), program.updates.end(), [&](const NewValue& u) { return u.input == i; });
    each_ref(program, [&](Ref& ref) { used = used || (ref.scope == Ref::kInput && ref.line == i); });
    if (used) continue;
    program.inputs.erase(program.inputs.begin() + i);
    each_ref(program, [&](Ref& ref) { ref.line -= ref.scope == Ref::kInput && ref.line > i; });
    for (NewValue& u : program.updates) u.input -= u.input > i;
  }
  return program;
}

class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& fails, int attempts)
      : best_(std::move(program)), fails_(fails), attempts_(attempts) {}

  Program run() {
    for (bool again = true; again && attempts_ > 0;) {
      again = fewer_outputs();
      again = fewer_calls() || again;
      again = fewer_lines() || again;
      again = plainer_bodies() || again;
      again = plainer_inputs() || again;
      again = smaller_shapes() || again;
    }
    return best_;
  }

 private:
  bool offer(Program program) {
    if (attempts_-- <= 0) return false;
    program = without_dead(std::move(program));
    if (program.outputs.empty() && program.updates.empty()) return false;
    if (!fails_(program)) return false;
    best_ = std::move(program);
    return true;
  }

  template <class F>
  bool offer_changed(F&& change) {
    Program program = best_;
    change(program);
    return offer(std::move(program));
  }

  bool fewer_outputs() {
    bool any = false;
    for (std::size_t i = best_.ranks.size(); i-- > 0;)
      any = offer_changed([&](Program& p) { p.ranks.erase(p.ranks.begin() + static_cast<std::ptrdiff_t>(i)); }) || any;
    if (best_.gradient) any = offer_changed([](Program& p) { p.gradient = false; }) || any;
    for (std::size_t i = best_.updates.size(); i-- > 0;)
      any = offer_changed([&](Program& p) { p.updates.erase(p.updates.begin() + static_cast<std::ptrdiff_t>(i)); }) ||
            any;
    for (std::size_t i = best_.outputs.size(); i-- > 0 && best_.outputs.size() > 1;)
      if (i < best_.outputs.size())
        any = offer_changed([&](Program& p) { p.outputs.erase(p.outputs.begin() + static_cast<std::ptrdiff_t>(i)); }) ||
              any;
    return any;
  }

  bool fewer_calls() {
    bool any = false;
    for (std::size_t i = best_.calls.size(); i-- > 0 && best_.calls.size() > 1;)
      if (i < best_.calls.size())
        any =
            offer_changed([&](Program& p) { p.calls.erase(p.calls.begin() + static_cast<std::ptrdiff_t>(i)); }) || any;
    for (std::size_t i = 0; i < best_.calls.size(); ++i)
      if (best_.calls[i].before != Call::kNothing)
        any = offer_changed([&](Program& p) { p.calls[i].before = Call::kNothing; }) || any;
    return any;
  }

  // Replaces a line by one of its operands or by a new input.
  bool fewer_lines() {
    bool any = false;
    for (int i = static_cast<int>(best_.lines.size()) - 1; i >= 0 && attempts_ > 0; --i) {
      if (i >= static_cast<int>(best_.lines.size())) continue;
      for (const Program& candidate : without_line(i))
        if (offer(candidate)) {
          any = true;
          break;
        }
    }
    return any;
  }

  std::vector<Program> without_line(int line) const {
    std::vector<Program> candidates;
    Session session(3);
    const SessionScope scope(session);
    Graph graph;
    try {
      graph = build(best_, {.open = false});
    } catch (...) {
      return candidates;
    }
    const auto& values = graph.lines[static_cast<std::size_t>(line)];
    if (values.size() != 1 || !values[0].shape().is_known()) return candidates;
    auto replaced = [&](const Ref& by, Program program) {
      each_ref(program, [&](Ref& ref) {
        if (ref.scope == Ref::kLine && ref.line == line) ref = by;
      });
      candidates.push_back(std::move(program));
    };
    const bool is_output = std::any_of(best_.outputs.begin(), best_.outputs.end(),
                                       [&](const Ref& r) { return r.scope == Ref::kLine && r.line == line; });
    for (const Ref& ref : best_.lines[static_cast<std::size_t>(line)].operands) {
      const Expr operand = ref.scope == Ref::kInput
                               ? graph.inputs[static_cast<std::size_t>(ref.line)]
                               : graph.lines[static_cast<std::size_t>(ref.line)][static_cast<std::size_t>(ref.output)];
      if (operand.meta() == values[0].meta() || is_output) replaced(ref, best_);
    }
    Program fed = best_;
    Input input{.dtype = values[0].dtype(), .shape = values[0].shape(), .key = 5};
    for (std::size_t g = 0; g < best_.rows.size(); ++g)
      if (input.shape.ndim() > 0 && input.shape[0] == best_.rows[g]) input.group = static_cast<int>(g);
    fed.inputs.push_back(input);
    replaced({Ref::kInput, static_cast<int>(fed.inputs.size()) - 1, 0}, fed);
    return candidates;
  }

  bool plainer_bodies() {
    bool any = false;
    // An accepted change may also remove lines that nothing reads any more.
    const auto stands = [&](std::size_t i, std::size_t b) {
      return i < best_.lines.size() && b < best_.lines[i].bodies.size();
    };
    for (std::size_t i = 0; i < best_.lines.size(); ++i)
      for (std::size_t b = 0; stands(i, b); ++b)
        for (int l = static_cast<int>(best_.lines[i].bodies[b].lines.size()) - 1; l >= 0 && stands(i, b); --l)
          any = offer_changed([&](Program& p) { drop_body_line(p.lines[i].bodies[b], l); }) || any;
    return any;
  }

  // Removes a line. Its readers read its first operand instead.
  static void drop_body_line(Body& body, int line) {
    if (line >= static_cast<int>(body.lines.size())) return;
    const auto& operands = body.lines[static_cast<std::size_t>(line)].operands;
    const Ref by = operands.empty() ? Ref{Ref::kArgument, 0, 0} : operands[0];
    const ForRef replace = [&](Ref& ref) {
      if (ref.scope == Ref::kBodyLine && ref.line == line) ref = by;
      else if (ref.scope == Ref::kBodyLine && ref.line > line) --ref.line;
    };
    each_ref(body.lines, replace);
    for (Ref& ref : body.results) replace(ref);
    body.lines.erase(body.lines.begin() + line);
  }

  bool plainer_inputs() {
    bool any = false;
    for (std::size_t i = 0; i < best_.inputs.size(); ++i) {
      const auto change = [&](auto set) {
        any = offer_changed([&](Program& p) {
                if (i < p.inputs.size()) set(p.inputs[i]);
              }) ||
              any;
      };
      if (i < best_.inputs.size() && best_.inputs[i].group >= 0) change([](Input& in) { in.group = -1; });
      if (i < best_.inputs.size() && best_.inputs[i].pool == Pool::kEdges)
        change([](Input& in) { in.pool = Pool::kTame; });
      if (i < best_.inputs.size() && best_.inputs[i].kind != Input::kFed)
        change([](Input& in) { in.kind = Input::kFed; });
    }
    return any;
  }

  // Replaces one size by a smaller one everywhere.
  bool smaller_shapes() {
    bool any = false;
    std::vector<std::int64_t> sizes;
    for (const Input& input : best_.inputs) sizes.insert(sizes.end(), input.shape.begin(), input.shape.end());
    std::sort(sizes.rbegin(), sizes.rend());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const std::int64_t size : sizes)
      for (const std::int64_t smaller : {std::int64_t{1}, std::int64_t{2}, size / 2}) {
        if (smaller >= size || smaller < 1) continue;
        const bool taken = offer_changed([&](Program& p) {
          for (Input& input : p.inputs)
            for (int k = 0; k < input.shape.ndim(); ++k)
              if (input.shape[k] == size) input.shape[k] = smaller;
          for (std::int64_t& n : p.rows) n = n == size ? smaller : n;
          for (Call& call : p.calls)
            for (std::int64_t& n : call.rows) n = n == size ? smaller : n;
        });
        any = taken || any;
        if (taken) break;
      }
    return any;
  }

  Program best_;
  const std::function<bool(const Program&)>& fails_;
  int attempts_;
};

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails, int attempts) {
  return Shrinker(std::move(program), fails, attempts).run();
}

}  // namespace syncline::graphs
