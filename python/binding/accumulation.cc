// Gradient accumulation (syncline/training/accumulation.h) for Keras's optimizers.
#include "syncline/training/accumulation.h"

#include <nanobind/nanobind.h>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/running.h"
#include "python/binding/tensor.h"

namespace syncline::python {
namespace {

Accumulation make_accumulation(nb::handle gradients, nb::handle variables, std::int64_t steps) {
  std::vector<Expr> summands;
  for (nb::handle g : nb::iter(gradients)) summands.push_back(expr_from(g));
  std::vector<Variable> of;
  for (nb::handle v : nb::iter(variables)) of.push_back(variable_of(v, "Accumulation"));
  return accumulate_gradients(summands, of, steps);
}

nb::list totals(const Accumulation& a) {
  nb::list result;
  for (const Expr& total : a.totals) result.append(tensor(total));
  return result;
}

// The optimizer's updates (results of update(), or pairs), applied when due; then the updates of the accumulation.
nb::list all_updates(const Accumulation& a, nb::handle optimizers) {
  nb::list result;
  for (nb::handle item : nb::iter(optimizers)) {
    UpdateTensor* known = nullptr;
    if (nb::try_cast(item, known) && known != nullptr) {
      result.append(UpdateTensor(a.when_due(known->update)));
      continue;
    }
    const Variable& x = variable_of(item[0], "Accumulation");
    result.append(UpdateTensor(a.when_due(update(x, new_value_from(x, item[1])))));
  }
  for (const Update& own : a.updates) result.append(UpdateTensor(own));
  return result;
}

}  // namespace

void bind_accumulation(nb::module_& m) {
  nb::class_<Accumulation>(m, "Accumulation")
      .def("__init__",
           [](Accumulation* self, nb::handle gradients, nb::handle variables, std::int64_t steps) {
             new (self) Accumulation(make_accumulation(gradients, variables, steps));
           })
      .def("totals", &totals)
      .def("updates", &all_updates)
      .def("state",
           [](const Accumulation& a) {
             nb::list result;
             for (const Variable& v : a.state) result.append(VariableTensor(v));
             return result;
           })
      .def("begin_anew", [](const Accumulation& a) {
        const Alone alone;
        set_value(a.state[0], 0);
      });
}

}  // namespace syncline::python
