// Configuration, names and the learning phase.
#include "syncline/backend/config.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <span>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/running.h"
#include "python/binding/tensor.h"
#include "syncline/backend/function.h"
#include "syncline/config.h"
#include "syncline/session.h"

namespace syncline::python {
namespace {

// The dict of keras.backend.common, null without Keras. Keras stores floatx, epsilon and the data format there, and a
// backend cannot override them; so its values apply if Keras is loaded.
PyObject* keras_state() {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "keras.backend.common");
  return module == nullptr ? nullptr : PyModule_GetDict(module);
}

void follow(PyObject* state, Config& config) {
  if (PyObject* floatx = PyDict_GetItemString(state, "_FLOATX"); floatx != nullptr && PyUnicode_Check(floatx))
    config.floatx = parse_dtype(PyUnicode_AsUTF8AndSize(floatx, nullptr));
  if (PyObject* epsilon = PyDict_GetItemString(state, "_EPSILON"); epsilon != nullptr && PyFloat_Check(epsilon))
    config.epsilon = PyFloat_AsDouble(epsilon);
  PyObject* format = PyDict_GetItemString(state, "_IMAGE_DATA_FORMAT");
  if (format != nullptr && PyUnicode_Check(format)) config.image_data_format = PyUnicode_AsUTF8AndSize(format, nullptr);
}

// The configuration for building graphs. It follows Keras only with the GIL: a step, which makes plans without the GIL,
// uses the last values.
Config& config() {
  Config& config = Session::current().config();
  if (holds_gil())
    if (PyObject* state = keras_state()) follow(state, config);
  return config;
}

}  // namespace

void bind_config(nb::module_& m) {
  set_config_source(&config);
  m.def("floatx", [] { return name_of_dtype(config().floatx); });
  m.def("set_floatx", [](const std::string& name) { set_floatx(name); });
  m.def("epsilon", [] { return config().epsilon; });
  m.def("set_epsilon", [](double e) { set_epsilon(e); });
  m.def("image_data_format", [] { return config().image_data_format; });
  m.def("set_image_data_format", [](const std::string& data_format) { set_image_data_format(data_format); });
  m.def("get_uid", &get_uid);
  m.def("reset_uids", &reset_uids);
  m.def("clear_session", &clear_session);
  m.def("manual_variable_initialization", nb::overload_cast<bool>(&manual_variable_initialization));
  m.def("learning_phase", [] { return tensor(learning_phase()); });
  m.def("depends_on_phase", [](const Tensor& x) {
    const auto nodes = nodes_under(std::span(&x.expr, 1));
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const auto& node) { return Session::is_learning_phase(Expr(node)); });
  });
  m.def("unique_name", [](const std::string& prefix) { return Session::current().unique_name(prefix); });
}

}  // namespace syncline::python
