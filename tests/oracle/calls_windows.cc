#include "syncline/backend/convolution.h"
#include "syncline/backend/shape.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

using Two = std::array<int, 2>;
using Three = std::array<int, 3>;

std::string padding_of(const Call& call) { return call.get("padding", "valid"); }
std::string format_of(const Call& call) { return call.get("data_format", "channels_last"); }

Conv1DOptions options_1d(const Call& call) {
  return {call.get("strides", 1), padding_of(call), format_of(call), call.get("dilation_rate", 1)};
}
Conv2DOptions options_2d(const Call& call) {
  return {call.get("strides", Two{1, 1}), padding_of(call), format_of(call), call.get("dilation_rate", Two{1, 1})};
}
Conv3DOptions options_3d(const Call& call) {
  return {call.get("strides", Three{1, 1, 1}), padding_of(call), format_of(call),
          call.get("dilation_rate", Three{1, 1, 1})};
}

}  // namespace

SYNCLINE_ORACLE_CALL(conv1d) { return conv1d(call.tensor(0), call.tensor(1), options_1d(call)); }
SYNCLINE_ORACLE_CALL(conv3d) { return conv3d(call.tensor(0), call.tensor(1), options_3d(call)); }

SYNCLINE_ORACLE_CALL(conv3d_transpose) {
  return conv3d_transpose(call.tensor(0), call.tensor(1), call.get<Shape>("output_shape"), options_3d(call));
}

SYNCLINE_ORACLE_CALL(depthwise_conv2d) { return depthwise_conv2d(call.tensor(0), call.tensor(1), options_2d(call)); }

SYNCLINE_ORACLE_CALL(separable_conv1d) {
  return separable_conv1d(call.tensor(0), call.tensor(1), call.tensor(2), options_1d(call));
}
SYNCLINE_ORACLE_CALL(separable_conv2d) {
  return separable_conv2d(call.tensor(0), call.tensor(1), call.tensor(2), options_2d(call));
}

SYNCLINE_ORACLE_CALL(local_conv1d) {
  return local_conv1d(call.tensor(0), call.tensor(1), call.list("kernel_size")[0], call.list("strides")[0],
                      format_of(call));
}
SYNCLINE_ORACLE_CALL(local_conv2d) {
  return local_conv2d(call.tensor(0), call.tensor(1), call.get<Two>("kernel_size"), call.get<Two>("strides"),
                      call.get<Two>("output_shape"), format_of(call));
}

SYNCLINE_ORACLE_CALL(pool3d) {
  return pool3d(call.tensor(0), call.get<Three>("pool_size"),
                {call.get("strides", Three{1, 1, 1}), padding_of(call), format_of(call), call.get("pool_mode", "max")});
}

SYNCLINE_ORACLE_CALL(spatial_3d_padding) {
  using Padding = std::array<Pads, 3>;
  return spatial_3d_padding(call.tensor(0), call.get("padding", Padding{{{1, 1}, {1, 1}, {1, 1}}}), format_of(call));
}

SYNCLINE_ORACLE_CALL(resize_images) {
  return resize_images(call.tensor(0), call.get<int>("height_factor"), call.get<int>("width_factor"),
                       call.get<std::string>("data_format"), call.get("interpolation", "nearest"));
}
SYNCLINE_ORACLE_CALL(resize_volumes) {
  return resize_volumes(call.tensor(0), call.get<int>("depth_factor"), call.get<int>("height_factor"),
                        call.get<int>("width_factor"), call.get<std::string>("data_format"));
}

}  // namespace syncline::testing
