// The parts of the extension module `syncline._core`, one per file, in the order of the documentation's groups. The
// documented names, defaults and docstrings are in python/syncline; the functions here take all arguments by position.
#pragma once

#include <nanobind/nanobind.h>

namespace syncline::python {

void bind_arrays(nanobind::module_& m);
void bind_config(nanobind::module_& m);
void bind_variables(nanobind::module_& m);
void bind_function(nanobind::module_& m);
void bind_random(nanobind::module_& m);
void bind_math(nanobind::module_& m);
void bind_shape(nanobind::module_& m);
void bind_nn(nanobind::module_& m);
void bind_convolution(nanobind::module_& m);
void bind_control(nanobind::module_& m);
void bind_ctc(nanobind::module_& m);
void bind_accumulation(nanobind::module_& m);
void bind_collectives(nanobind::module_& m);
void bind_distributed(nanobind::module_& m);

}  // namespace syncline::python
