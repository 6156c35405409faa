// The extension module, with the translation of C++ errors to Python's.
#include <nanobind/nanobind.h>

#include "base/version.h"
#include "python/binding/binding.h"
#include "python/binding/tensor.h"
#include "syncline/error.h"

namespace syncline::python {
namespace {

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const ValueError& e) {  // ShapeError too
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const DTypeError& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const IoError& e) {
    PyErr_SetString(PyExc_OSError, e.what());
  } catch (const Error& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

// Subclasses of RuntimeError for errors that a program may handle separately.
template <class E>
void bind_error(nanobind::module_& m, const char* name, const char* doc) {
  nanobind::exception<E> type(m, name, PyExc_RuntimeError);
  type.attr("__module__") = "syncline.distributed";
  type.attr("__doc__") = doc;
}

}  // namespace
}  // namespace syncline::python

NB_MODULE(_core, m) {
  using namespace syncline::python;
  m.doc() = "Syncline's graph, steps and ranks. The documented functions are in the package `syncline`.";
  m.attr("version") = syncline::version();
  nanobind::register_exception_translator(&translate);
  bind_error<syncline::DisagreementError>(
      m, "DisagreementError",
      "Ranks did different things, or hold different values. All ranks raise it, and it ends the job.");
  bind_error<syncline::StallError>(m, "StallError",
                                   "Another rank did not arrive within wait_limit, or has left or died.");
  // Keras's modules hold tensors until the interpreter ends, which nanobind would report as leaks.
  nanobind::set_leak_warnings(false);
  bind_arrays(m);
  bind_tensors(m);
  bind_config(m);
  bind_variables(m);
  bind_function(m);
  bind_random(m);
  bind_math(m);
  bind_shape(m);
  bind_nn(m);
  bind_convolution(m);
  bind_control(m);
  bind_ctc(m);
  bind_accumulation(m);
  bind_collectives(m);
  bind_distributed(m);
}
