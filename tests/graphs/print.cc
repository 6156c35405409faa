#include <cmath>

#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

std::string type_text(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "bool";
    case DType::kFloat16: return "Float16";
    case DType::kFloat32: return "float";
    case DType::kFloat64: return "double";
    default: return "std::" + std::string(name_of(dtype)) + "_t";
  }
}

std::string dtype_text(DType dtype) {
  std::string name(name_of(dtype));
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return "DType::k" + name;
}

std::string shape_text(const Shape& shape) {
  std::string text = "{";
  for (int i = 0; i < shape.ndim(); ++i)
    text += (i > 0 ? ", " : "") + (shape[i] < 0 ? std::string("kUnknown") : std::to_string(shape[i]));
  return text + "}";
}

std::string number_text(double v, DType dtype) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  if (dtype == DType::kBool) return v != 0 ? "true" : "false";
  char text[40];
  std::snprintf(text, sizeof text, dtype == DType::kFloat64 ? "%.17g" : "%.9g", v);
  return text;
}

std::string array_text(const Array& value) {
  const bool half = value.dtype() == DType::kFloat16;  // has no literals
  const Array wide = value.cast(DType::kFloat64);
  std::string text =
      "Array::from<" + (half ? "float" : type_text(value.dtype())) + ">(Shape" + shape_text(value.shape()) + ", {";
  for (std::int64_t i = 0; i < wide.size(); ++i)
    text += (i > 0 ? ", " : "") + number_text(wide.data<double>()[i], value.dtype());
  return text + "})" + (half ? ".cast(DType::kFloat16)" : "");
}

// The elements of a small value, or the call that draws a large one (values.cc).
std::string value_text(const Program& program, const Input& input, std::size_t call) {
  static constexpr const char* kPools[] = {"kTame", "kPositive", "kTies", "kEdges", "kProbability", "kIndex"};
  const Array value = value_in(program, input, call, false);
  if (value.size() <= 40) return array_text(value);
  return join_text("values_of(", dtype_text(value.dtype()), ", Shape", shape_text(value.shape()),
                   ", Pool::", kPools[static_cast<std::size_t>(input.pool)], ", ", input.limit, ", ",
                   key_in(input, call), ")");
}

std::string input_text(const Program& program, const Input& input) {
  Shape shape = input.shape;
  if (input.group >= 0) shape[0] = kUnknown;
  switch (input.kind) {
    case Input::kFed:
      return "placeholder({.shape = " + shape_text(shape) + ", .dtype = " + dtype_text(input.dtype) +
             (input.sparse ? ", .sparse = true})" : "})");
    case Input::kVariable: return "variable(" + value_text(program, input, 0) + ")";
    case Input::kConstant: return "constant(" + value_text(program, input, 0) + ")";
    default: {
      Input one = input;
      one.shape = {};
      const double value = value_in(program, one, 0, false).item();
      return join_text("constant(", number_text(value, DType::kFloat64), ", ", dtype_text(input.dtype), ", Shape",
                       shape_text(shape), ")");
    }
  }
}

std::string update_text(const NewValue& u) {
  const std::string both = join_text("x", u.input, ", ", name_of_ref(u.value));
  switch (u.kind) {
    case NewValue::kSet: return "update(" + both + ")";
    case NewValue::kAdd: return "update_add(" + both + ")";
    case NewValue::kSubtract: return "update_sub(" + both + ")";
    default: return "moving_average_update(" + both + ", 0.9)";
  }
}

std::string call_text(const Program& program, std::size_t call) {
  static constexpr const char* kEvents[] = {"", "  set_learning_phase(1);\n", "  set_learning_phase(0);\n",
                                            "  clear_session();\n"};
  std::string text = kEvents[program.calls[call].before];
  text += "  f({";
  bool any = false;
  for (const Input& input : program.inputs)
    if (input.kind == Input::kFed) {
      text += (any ? ", " : "") + value_text(program, input, call);
      any = true;
    }
  return text + "});\n";
}

}  // namespace

std::string name_of_ref(const Ref& ref) {
  const std::string output = ref.output > 0 ? "_" + std::to_string(ref.output) : "";
  switch (ref.scope) {
    case Ref::kInput: return "x" + std::to_string(ref.line);
    case Ref::kLine: return "v" + std::to_string(ref.line) + output;
    case Ref::kArgument: return "a[" + std::to_string(ref.line) + "]";
    case Ref::kBodyLine: return "b" + std::to_string(ref.line) + output;
  }
  return {};
}

std::string declaration_text(Ref ref, std::size_t values, const std::string& code) {
  const std::string first = name_of_ref(ref);
  if (values == 1) return join_text("const Expr ", first, " = ", code, ";");
  std::string text = join_text("const std::vector<Expr> ", first, "_all = ", code, ";");
  for (; ref.output < static_cast<int>(values); ++ref.output)
    text += join_text(" const Expr ", name_of_ref(ref), " = ", first, "_all[", ref.output, "];");
  return text;
}

std::string print(const Program& program) {
  Session session(3);
  const SessionScope scope(session);
  Graph graph;
  try {
    graph = build(program, {.open = false, .text = true});
  } catch (const std::exception& e) {
    return std::string("// cannot be built any more: ") + e.what() + "\n";
  } catch (const Rejected&) {
    return "// cannot be built any more\n";
  }
  std::string text = join_text("TEST(Graphs, Seed", program.seed, ") {\n"), fed, outputs, updates;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    text += join_text(input.kind == Input::kVariable ? "  const Variable x" : "  const Expr x", i, " = ",
                      input_text(program, input), ";\n");
    if (input.kind == Input::kFed) fed += (fed.empty() ? "x" : ", x") + std::to_string(i);
  }
  for (std::size_t i = 0; i < graph.texts.size(); ++i)
    text += "  " + declaration_text({Ref::kLine, static_cast<int>(i), 0}, graph.lines[i].size(), graph.texts[i]) + "\n";
  for (const Ref& ref : program.outputs) outputs += (outputs.empty() ? "" : ", ") + name_of_ref(ref);
  for (const NewValue& u : program.updates) updates += (updates.empty() ? "" : ", ") + update_text(u);
  if (program.gradient) text += "  // and the gradients of the outputs' weighted sum by every floating input\n";
  text += "  Function f({" + fed + "}, {" + outputs + "}, {" + updates + "});\n";
  for (std::size_t call = 0; call < program.calls.size(); ++call) {
    text += call_text(program, call);
    for (std::size_t g = 0; !program.ranks.empty() && g < program.calls[call].ranks.size(); ++g) {
      text += join_text("  // rows of group ", g, " on each rank:");
      for (const std::int64_t n : program.calls[call].ranks[g]) text += " " + std::to_string(n);
      text += "\n";
    }
  }
  return text + "}\n";
}

}  // namespace syncline::graphs
