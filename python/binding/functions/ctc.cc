#include "syncline/backend/ctc.h"

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"

namespace syncline::python {

void bind_ctc(nb::module_& m) {
  m.def("ctc_label_dense_to_sparse", [](nb::handle labels, nb::handle label_lengths) {
    return tensor(ctc_label_dense_to_sparse(expr_from(labels), expr_from(label_lengths)));
  });
  m.def("ctc_batch_cost",
        [](nb::handle y_true, nb::handle y_pred, nb::handle input_length, nb::handle label_length, double epsilon) {
          return tensor(ctc_batch_cost(expr_from(y_true), expr_from(y_pred), expr_from(input_length),
                                       expr_from(label_length), {.epsilon = epsilon}));
        });
  m.def("ctc_decode", [](nb::handle y_pred, nb::handle input_length, bool greedy, nb::handle beam_width,
                         nb::handle top_paths, bool merge_repeated, double epsilon) {
    const CtcDecoded result = ctc_decode(expr_from(y_pred), expr_from(input_length),
                                         {.greedy = greedy,
                                          .beam_width = int_from(beam_width, "beam_width"),
                                          .top_paths = int_from(top_paths, "top_paths"),
                                          .merge_repeated = merge_repeated,
                                          .epsilon = epsilon});
    nb::list decoded;
    for (const Expr& sequence : result.decoded) decoded.append(tensor(sequence));
    return nb::make_tuple(decoded, tensor(result.log_probability));
  });
}

}  // namespace syncline::python
