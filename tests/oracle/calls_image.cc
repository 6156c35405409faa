#include "syncline/backend/convolution.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

using Two = std::array<int, 2>;

Conv2DOptions options_of(const Call& call) {
  return {.strides = call.get("strides", Two{1, 1}),
          .padding = call.get("padding", "valid"),
          .data_format = call.get("data_format", "channels_last"),
          .dilation_rate = call.get("dilation_rate", Two{1, 1})};
}

}  // namespace

SYNCLINE_ORACLE_CALL(conv2d) { return conv2d(call.tensor(0), call.tensor(1), options_of(call)); }

SYNCLINE_ORACLE_CALL(conv2d_transpose) {
  return conv2d_transpose(call.tensor(0), call.tensor(1), call.get<Shape>("output_shape"), options_of(call));
}

SYNCLINE_ORACLE_CALL(pool2d) {
  return pool2d(call.tensor(0), call.get<Two>("pool_size"),
                {.strides = call.get("strides", Two{1, 1}),
                 .padding = call.get("padding", "valid"),
                 .data_format = call.get("data_format", "channels_last"),
                 .pool_mode = call.get("pool_mode", "max")});
}

SYNCLINE_ORACLE_CALL(bias_add) {
  return bias_add(call.tensor(0), call.tensor(1), call.get("data_format", "channels_last"));
}

}  // namespace syncline::testing
