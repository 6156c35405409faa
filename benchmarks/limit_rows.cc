#include "benchmarks/limit_rows.h"

#include <array>
#include <utility>

#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/training/optimizers.h"

namespace syncline::benchmarks {
namespace {

using Index = std::int64_t;

Expr fed(Shape shape, DType dtype = DType::kFloat32) {
  return placeholder({.shape = std::move(shape), .dtype = dtype, .name = "x"});
}

// The gradients of y with respect to `wrt`, for a fed gradient of y. `also`: what the gradients read beside them.
LimitGraph gradient_of(const Expr& y, std::vector<Expr> wrt, std::vector<Expr> also = {}) {
  const Expr dy = fed(y.shape());
  LimitGraph graph{.feeds = {dy}, .outputs = backpropagate({&y, 1}, {&dy, 1}, wrt)};
  graph.feeds.insert(graph.feeds.end(), also.begin(), also.end());
  return graph;
}

class Rows {
 public:
  std::vector<LimitRow> take() { return std::move(rows_); }

  void add(std::string family, std::string what, std::function<LimitGraph()> make) {
    rows_.push_back({std::move(family), std::move(what), std::move(make)});
  }

  // The product of a dense layer, and those of its gradients.
  void dense(Index m, Index n, Index k) {
    const auto size = [](Index a, Index b, Index c) { return join_text(a, 'x', b, 'x', c); };
    add("product", size(m, n, k), [=] {
      const Expr x = fed({m, k}), w = fed({k, n});
      return LimitGraph{.feeds = {x, w}, .outputs = {dot(x, w)}, .product = {m, n, k}};
    });
    add("product", size(k, n, m) + ", A transposed", [=] {
      const Expr x = fed({m, k}), dy = fed({m, n});
      return LimitGraph{
          .feeds = {x, dy}, .outputs = {dot_kernel_grad(x, dy)}, .product = {k, n, m}, .a_transposed = true};
    });
    add("product", size(m, k, n) + ", B transposed", [=] {
      const Expr dy = fed({m, n}), w = fed({k, n});
      return LimitGraph{
          .feeds = {dy, w}, .outputs = {dot_transposed(dy, w)}, .product = {m, k, n}, .b_transposed = true};
    });
  }

  // A convolution of x and a kernel, and both gradients.
  void conv(const std::string& family, const std::string& what, const Shape& x_shape, const Shape& kernel_shape,
            const std::function<Expr(const Expr&, const Expr&)>& y_of) {
    add(family, what, [=] {
      const Expr x = fed(x_shape), w = fed(kernel_shape);
      return LimitGraph{.feeds = {x, w}, .outputs = {y_of(x, w)}};
    });
    add(family + ", dx", what, [=] {
      const Expr x = fed(x_shape), w = fed(kernel_shape);
      return gradient_of(y_of(x, w), {x}, {w});
    });
    add(family + ", dw", what, [=] {
      const Expr x = fed(x_shape), w = fed(kernel_shape);
      return gradient_of(y_of(x, w), {w}, {x});
    });
  }
  void conv2d_same(Index batch, Index size, Index in, Index out, Index rows, Index columns, int stride = 1) {
    const std::string family = rows * columns == 1 ? "pointwise conv" : stride > 1 ? "strided conv" : "conv";
    conv(family, join_text(rows, 'x', columns, '/', stride, ' ', batch, 'x', size, 'x', size, 'x', in, " to ", out),
         {batch, size, size, in}, {rows, columns, in, out}, [=](const Expr& x, const Expr& w) {
           return conv2d(x, w, {.strides = {stride, stride}, .padding = "same"});
         });
  }
  void depthwise(Index batch, Index size, Index channels, int stride) {
    conv("depthwise conv", join_text("3x3/", stride, ' ', batch, 'x', size, 'x', size, 'x', channels),
         {batch, size, size, channels}, {3, 3, channels, 1}, [=](const Expr& x, const Expr& w) {
           return depthwise_conv2d(x, w, {.strides = {stride, stride}, .padding = "same"});
         });
  }

  // An op of a tensor; with its gradient, which mostly reads the op's result.
  void both(const std::string& family, const std::string& what, const Shape& shape,
            const std::function<Expr(const Expr&)>& y_of) {
    add(family, what, [=] {
      const Expr x = fed(shape);
      return LimitGraph{.feeds = {x}, .outputs = {y_of(x)}};
    });
    add(family + ", forward and backward", what, [=] {
      const Expr x = fed(shape), y = y_of(x);
      LimitGraph graph = gradient_of(y, {x}, {x});
      graph.outputs.push_back(y);
      return graph;
    });
  }

 private:
  std::vector<LimitRow> rows_;
};

void add_products(Rows& rows) {
  rows.dense(1024, 1024, 1024);
  rows.dense(2048, 256, 256);  // transformer
  rows.dense(2048, 1024, 256);
  rows.dense(16, 4096, 2048);  // VGG16
  rows.dense(256, 128, 64);    // recommender
  rows.dense(32, 1024, 256);   // LSTM of seq2seq, one iteration
  rows.dense(1280, 1024, 80);  // all iterations
  rows.dense(65536, 64, 64);
  const auto heads = [](std::array<int, 2> axes, Shape a, Shape b) {
    return [=] {
      const Expr x = fed(a), y = fed(b);
      return LimitGraph{.feeds = {x, y}, .outputs = {batch_dot(x, y, axes)}};
    };
  };
  rows.add("batch_dot", "64 of 128x128x64, B transposed", heads({2, 2}, {64, 128, 64}, {64, 128, 64}));
  rows.add("batch_dot", "64 of 128x64x128", heads({2, 1}, {64, 128, 128}, {64, 128, 64}));
}

void add_convolutions(Rows& rows) {
  rows.conv2d_same(16, 128, 3, 64, 7, 7, 2);  // ResNet50
  rows.conv2d_same(16, 32, 64, 64, 3, 3);
  rows.conv2d_same(16, 32, 64, 256, 1, 1);
  rows.conv2d_same(16, 8, 256, 256, 3, 3);
  rows.conv2d_same(16, 4, 512, 512, 3, 3);
  rows.conv2d_same(16, 4, 2048, 512, 1, 1);
  rows.conv2d_same(16, 16, 512, 1024, 1, 1, 2);
  rows.conv2d_same(16, 64, 16, 96, 1, 1);  // MobileNetV2
  rows.conv2d_same(16, 32, 144, 24, 1, 1);
  rows.conv2d_same(16, 4, 960, 160, 1, 1);
  rows.conv2d_same(16, 64, 64, 64, 3, 3);   // VGG16
  rows.conv2d_same(8, 17, 128, 128, 1, 7);  // InceptionV3, about
  rows.conv2d_same(8, 15, 48, 64, 5, 5);
  rows.conv2d_same(16, 12, 128, 32, 3, 3);      // DenseNet121
  rows.conv2d_same(16, 24, 128, 128, 3, 3, 2);  // as in ResNets of later versions
  rows.depthwise(16, 64, 96, 2);
  rows.depthwise(16, 32, 144, 1);
  rows.depthwise(16, 4, 960, 1);
  rows.conv("transposed conv", "3x3/2 16x16x16x128 to 64", {16, 16, 16, 128}, {3, 3, 64, 128},
            [](const Expr& x, const Expr& w) {
              return conv2d_transpose(x, w, {16, 32, 32, 64}, {.strides = {2, 2}, .padding = "same"});
            });
  rows.conv("conv1d", "3, dilation 4, 32x256x64 to 64", {32, 264, 64}, {3, 64, 64},
            [](const Expr& x, const Expr& w) { return conv1d(x, w, {.dilation_rate = 4}); });
  rows.conv("conv3d", "3x3x3 8x16x32x32x3 to 16", {8, 16, 32, 32, 3}, {3, 3, 3, 3, 16},
            [](const Expr& x, const Expr& w) { return conv3d(x, w); });
  rows.conv("conv3d", "3x3x3 8x7x15x15x16 to 32", {8, 7, 15, 15, 16}, {3, 3, 3, 16, 32},
            [](const Expr& x, const Expr& w) { return conv3d(x, w); });
}

void add_windows(Rows& rows) {
  const Shape shape{16, 64, 64, 64};
  rows.both("max pooling", "2x2/2 16x64x64x64", shape, [](const Expr& x) {
    return pool2d(x, {2, 2}, {.strides = {2, 2}});
  });
  rows.both("max pooling", "3x3/2 16x64x64x64", shape, [](const Expr& x) {
    return pool2d(x, {3, 3}, {.strides = {2, 2}, .padding = "same"});
  });
  rows.both("average pooling", "3x3/1 16x16x16x192", {16, 16, 16, 192}, [](const Expr& x) {
    return pool2d(x, {3, 3}, {.padding = "same", .pool_mode = "avg"});
  });
  rows.both("pad", "16x64x64x64 by 1", shape, [](const Expr& x) { return spatial_2d_padding(x); });
  rows.both("permute", "16x128x4x64 to 16x4x128x64", {16, 128, 4, 64}, [](const Expr& x) {
    return permute_dimensions(x, {0, 2, 1, 3});
  });
  rows.both("permute", "channels first, 16x64x64x64", shape, [](const Expr& x) {
    return permute_dimensions(x, {0, 3, 1, 2});
  });
  rows.add("concatenate", "16x24x24x(128 and 32)", [] {
    const Expr x = fed({16, 24, 24, 128}), y = fed({16, 24, 24, 32});
    return LimitGraph{.feeds = {x, y}, .outputs = {concatenate({x, y})}};
  });
}

void add_normalizations(Rows& rows) {
  const Shape shape{16, 32, 32, 256};
  // Statistics over the batch are complete only when all of x has been read, so x, and the gradient behind it, pass
  // twice.
  constexpr double kBytes = 4.0 * 16 * 32 * 32 * 256;
  const auto relu_of_normalized = [](const Expr& x, const Expr& gamma, const Expr& beta) {
    return relu(normalize_batch_in_training(x, gamma, beta, {0, 1, 2}).normalized);
  };
  rows.add("batch normalization + relu", "16x32x32x256", [=] {
    const Expr x = fed(shape), gamma = fed({256}), beta = fed({256});
    return LimitGraph{.feeds = {x, gamma, beta}, .outputs = {relu_of_normalized(x, gamma, beta)}, .bytes = 3 * kBytes};
  });
  rows.add("batch normalization + relu, forward and backward", "16x32x32x256", [=] {
    const Expr x = fed(shape), gamma = fed({256}), beta = fed({256});
    const Expr y = relu_of_normalized(x, gamma, beta);
    LimitGraph graph = gradient_of(y, {x, gamma, beta}, {x, gamma, beta});
    graph.outputs.push_back(y);
    graph.bytes = 8 * kBytes;
    return graph;
  });
  rows.both("layer normalization", "2048x256", {2048, 256},
            [](const Expr& x) { return (x - mean(x, {-1}, true)) / sqrt(var(x, {-1}, true) + 1e-5); });
  rows.both("softmax", "8192x128", {8192, 128}, [](const Expr& x) { return softmax(x); });
  rows.add("crossentropy, forward and backward", "4096x1000", [] {
    const Expr x = fed({4096, 1000}), target = fed({4096, 1000});
    const Expr loss = mean(categorical_crossentropy(target, x, {.from_logits = true}));
    return LimitGraph{.feeds = {x, target}, .outputs = {loss, gradients(loss, {x})[0]}};
  });
}

void add_elementwise(Rows& rows) {
  const Shape shape{16, 64, 64, 96};
  rows.both("elementwise", "relu6 of 6.3 M", shape, [](const Expr& x) { return relu(x, {.max_value = 6.0}); });
  rows.both("elementwise", "tanh of 6.3 M", shape, [](const Expr& x) { return tanh(x); });
  rows.both("elementwise", "sigmoid of 6.3 M", shape, [](const Expr& x) { return sigmoid(x); });
  rows.both("elementwise", "exp of 6.3 M", shape, [](const Expr& x) { return exp(x); });
  rows.both("elementwise", "gelu of 6.3 M", shape,
            [](const Expr& x) { return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * pow(x, 3.0)))); });
  for (const auto& [what, axes] :
       {std::pair{"rows of 65536x96", Axes{0, 1, 2}}, std::pair{"columns of 65536x96", Axes{-1}}}) {
    rows.add("sum", what, [shape, axes = axes] {
      const Expr x = fed(shape);
      return LimitGraph{.feeds = {x}, .outputs = {sum(x, axes)}};
    });
    rows.add("max", what, [shape, axes = axes] {
      const Expr x = fed(shape);
      return LimitGraph{.feeds = {x}, .outputs = {max(x, axes)}};
    });
  }
  rows.add("argmax", "65536x96", [] {
    const Expr x = fed({65536, 96});
    return LimitGraph{.feeds = {x}, .outputs = {argmax(x)}};
  });
}

Expr part(const Expr& x, int i, Index units) { return slice_axis(x, x.ndim() - 1, i * units, units); }

// A recurrent layer of 256 units on 32 x 40 x 80, and its gradients.
void add_cell(Rows& rows, const std::string& family, Index gates, std::size_t states, const RnnStep& step) {
  constexpr Index kRows = 32, kSteps = 40, kInputs = 80, kUnits = 256;
  const double flops = 2.0 * static_cast<double>(kRows * kSteps * gates * kUnits * (kInputs + kUnits));
  const auto layer = [=](std::vector<Expr>& x) {
    x = {fed({kRows, kSteps, kInputs}), fed({kInputs, gates * kUnits}), fed({kUnits, gates * kUnits})};
    const std::vector<Expr> initial(
        states, fill_like(slice_axis(squeeze(slice_axis(dot(x[0], x[1]), 1, 0, 1), 1), 1, 0, kUnits), 0));
    const RnnStep with_weights = [&](const Expr& input, const std::vector<Expr>& state) {
      std::vector<Expr> all{dot(input, x[1]), dot(state[0], x[2])};
      all.insert(all.end(), state.begin(), state.end());
      return step(all[0], {all.begin() + 1, all.end()});
    };
    return rnn(with_weights, x[0], initial).outputs;
  };
  rows.add(family, "32x40x80 to 256", [=] {
    std::vector<Expr> x;
    const Expr y = layer(x);
    return LimitGraph{.feeds = x, .outputs = {y}, .flops = flops};
  });
  rows.add(family + ", forward and backward", "32x40x80 to 256", [=] {
    std::vector<Expr> x;
    const Expr y = layer(x);
    LimitGraph graph = gradient_of(y, {x[1], x[2]}, x);
    graph.flops = 3 * flops - 2.0 * static_cast<double>(kRows * kSteps * gates * kUnits * kInputs);  // no dx
    return graph;
  });
}

void add_recurrence(Rows& rows) {
  constexpr Index kUnits = 256;
  // The arguments: the input's product; the state's product and the states.
  add_cell(rows, "LSTM", 4, 2, [](const Expr& input, const std::vector<Expr>& s) {
    const Expr z = input + s[0];
    const Expr c = sigmoid(part(z, 1, kUnits)) * s[2] + sigmoid(part(z, 0, kUnits)) * tanh(part(z, 2, kUnits));
    const Expr h = sigmoid(part(z, 3, kUnits)) * tanh(c);
    return std::pair{h, std::vector<Expr>{h, c}};
  });
  add_cell(rows, "GRU", 3, 1, [](const Expr& a, const std::vector<Expr>& s) {
    const Expr update = sigmoid(part(a, 0, kUnits) + part(s[0], 0, kUnits));
    const Expr reset = sigmoid(part(a, 1, kUnits) + part(s[0], 1, kUnits));
    const Expr h = update * s[1] + (1.0 - update) * tanh(part(a, 2, kUnits) + reset * part(s[0], 2, kUnits));
    return std::pair{h, std::vector<Expr>{h}};
  });
}

void add_tables_and_optimizers(Rows& rows) {
  rows.add("embedding", "32x100 of 20000x64", [] {
    const Expr table = fed({20000, 64}), words = fed({32, 100}, DType::kInt32);
    return LimitGraph{
        .feeds = {table, words}, .outputs = {gather(table, words)}, .below = 20000, .bytes = 4.0 * 3200 * (2 * 64 + 1)};
  });
  rows.add("embedding, gradient of the table", "16x128 of 8000x256", [] {
    const Expr table = fed({8000, 256}), words = fed({16, 128}, DType::kInt32);
    LimitGraph graph = gradient_of(gather(table, words), {table}, {words});
    graph.below = 8000;
    return graph;
  });
  // The gradient of half the sum of squares is the variable itself.
  const auto of_one_variable = [&](const std::string& name, Optimizer (*make)(const Expr&, std::span<const Variable>)) {
    rows.add(name, "4 M weights", [=] {
      const Variable v = variable(Array(DType::kFloat32, Shape{2048, 2048}));
      return LimitGraph{.updates = make(0.5 * sum(square(v)), {&v, 1}).updates};
    });
  };
  of_one_variable("SGD, momentum",
                  [](const Expr& loss, std::span<const Variable> v) { return sgd(loss, v, {.momentum = 0.9}); });
  of_one_variable("Adam", [](const Expr& loss, std::span<const Variable> v) { return adam(loss, v); });
  of_one_variable("RMSprop", [](const Expr& loss, std::span<const Variable> v) { return rmsprop(loss, v); });
}

}  // namespace

std::vector<LimitRow> limit_rows() {
  Rows rows;
  add_products(rows);
  add_convolutions(rows);
  add_windows(rows);
  add_normalizations(rows);
  add_elementwise(rows);
  add_recurrence(rows);
  add_tables_and_optimizers(rows);
  return rows.take();
}

}  // namespace syncline::benchmarks
