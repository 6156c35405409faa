#include "syncline/backend/nn.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

#define SYNCLINE_ACTIVATION(function) \
  SYNCLINE_ORACLE_CALL(function) { return function(call.tensor(0)); }

SYNCLINE_ACTIVATION(sigmoid)
SYNCLINE_ACTIVATION(hard_sigmoid)
SYNCLINE_ACTIVATION(tanh)
SYNCLINE_ACTIVATION(softplus)
SYNCLINE_ACTIVATION(softsign)

SYNCLINE_ORACLE_CALL(relu) {
  return relu(call.tensor(0), {.alpha = call.get("alpha", 0.0),
                               .max_value = call.optional<double>("max_value"),
                               .threshold = call.get("threshold", 0.0)});
}

SYNCLINE_ORACLE_CALL(elu) { return elu(call.tensor(0), call.get("alpha", 1.0)); }

SYNCLINE_ORACLE_CALL(softmax) { return softmax(call.tensor(0), call.get("axis", -1)); }

SYNCLINE_ORACLE_CALL(categorical_crossentropy) {
  return categorical_crossentropy(call.tensor(0), call.tensor(1),
                                  {.from_logits = call.get("from_logits", false), .axis = call.get("axis", -1)});
}

SYNCLINE_ORACLE_CALL(sparse_categorical_crossentropy) {
  return sparse_categorical_crossentropy(call.tensor(0), call.tensor(1),
                                         {.from_logits = call.get("from_logits", false), .axis = call.get("axis", -1)});
}

SYNCLINE_ORACLE_CALL(binary_crossentropy) {
  return binary_crossentropy(call.tensor(0), call.tensor(1), {.from_logits = call.get("from_logits", false)});
}

SYNCLINE_ORACLE_CALL(in_top_k) { return in_top_k(call.tensor(0), call.tensor(1), call.get<int>("k")); }

SYNCLINE_ORACLE_CALL(l2_normalize) { return l2_normalize(call.tensor(0), call.axes("axis")); }

SYNCLINE_ORACLE_CALL(batch_normalization) {
  return batch_normalization(call.tensor(0), call.tensor(1), call.tensor(2), call.tensor(3), call.tensor(4),
                             call.get("axis", -1), call.get("epsilon", 1e-3));
}

SYNCLINE_ORACLE_CALL(normalize_batch_in_training) {
  const auto [normalized, mean, variance] =
      normalize_batch_in_training(call.tensor(0), call.tensor(1), call.tensor(2),
                                  call.get<std::vector<int>>("reduction_axes"), call.get("epsilon", 1e-3));
  return {normalized, mean, variance};
}

}  // namespace syncline::testing
