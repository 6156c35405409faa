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

std::string input_text(const Program& program, const Input& input) {
  Shape shape = input.shape;
  if (input.group >= 0) shape[0] = kUnknown;
  const std::string value = input.kind == Input::kFed ? "" : print_array(value_in(program, input, 0, false));
  switch (input.kind) {
    case Input::kFed:
      return "placeholder({.shape = " + shape_text(shape) + ", .dtype = " + dtype_text(input.dtype) + "})";
    case Input::kVariable: return "variable(" + value + ")";
    default: return "constant(" + value + ")";
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
      text += (any ? ", " : "") + print_array(value_in(program, input, call, false));
      any = true;
    }
  return text + "});\n";
}

}  // namespace

std::string print_array(const Array& value) {
  if (value.size() > 40) return "values of " + dtype_text(value.dtype()) + shape_text(value.shape());
  const Array wide = value.cast(DType::kFloat64);
  std::string text = "Array::from<" + type_text(value.dtype()) + ">(Shape" + shape_text(value.shape()) + ", {";
  for (std::int64_t i = 0; i < wide.size(); ++i)
    text += (i > 0 ? ", " : "") + number_text(wide.data<double>()[i], value.dtype());
  return text + "})";
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
    if (graph.lines[i].size() == 1) text += join_text("  const Expr v", i, " = ", graph.texts[i], ";\n");
    else text += join_text("  const std::vector<Expr> v", i, "_all = ", graph.texts[i], ";  // v", i, ", v", i, "_1\n");
  for (const Ref& ref : program.outputs) outputs += (outputs.empty() ? "" : ", ") + name_of_ref(ref);
  for (const NewValue& u : program.updates)
    updates += join_text(updates.empty() ? "" : ", ", "update(x", u.input, ", ", name_of_ref(u.value), ")");
  if (program.gradient) text += "  // and the gradients of the outputs' weighted sum by every floating input\n";
  text += "  Function f({" + fed + "}, {" + outputs + "}, {" + updates + "});\n";
  for (std::size_t call = 0; call < program.calls.size(); ++call) {
    text += call_text(program, call);
    for (std::size_t g = 0; program.sides > 0 && g < program.calls[call].ranks.size(); ++g) {
      text += join_text("  // rows of group ", g, " on each rank:");
      for (const std::int64_t n : program.calls[call].ranks[g]) text += " " + std::to_string(n);
      text += "\n";
    }
  }
  return text + "}\n";
}

}  // namespace syncline::graphs
