// ctc_decode: greedy search for the best path, and beam search.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/alignment.h"
#include "ops/ctc/beam.h"
#include "ops/ctc/lengths.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/ctc.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

constexpr std::string_view kDecode = "ctc_decode";

void check_operands(std::span<const Meta> in) {
  ctc::check_logits(kDecode, in[0]);
  if (in[1].shape.ndim() != 1 || sizes_differ(in[1].shape[0], in[0].shape[0]))
    fail<ShapeError>(kDecode, ": y_pred ", in[0].shape, " and input_length ", in[1].shape,
                     " do not fit together; give (samples, time, classes) and lengths of (samples) or (samples, 1)");
}

Placed place_samples(const PlaceArgs& args) {
  const Placement rows = Placement::split(0);
  return args.at[0].is_split(0) || args.at[1].is_split(0) ? Placed{{rows, rows}, {rows, rows}} : gathered(args);
}

// Inputs: log probabilities, input_length (int32). Outputs: labels (samples, time), -log P (samples, 1).
struct CtcGreedy : WithoutAttrs {
  static constexpr std::string_view kName = "ctc_greedy";
  static std::vector<Meta> infer(const Attrs&, std::span<const Meta> in) {
    check_operands(in);
    const Shape& y = in[0].shape;
    return {{DType::kInt64, Shape{y[0], y[1]}}, {in[0].dtype, Shape{y[0], 1}}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_samples(args); }
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }

  template <class T>
  static void decode(const T* scores, std::int64_t steps, std::int64_t classes, std::int64_t* labels, T* loss) {
    std::int64_t before = classes - 1, count = 0;
    T total = 0;
    for (std::int64_t t = 0; t < steps; ++t) {
      const T* row = scores + t * classes;
      const std::int64_t best = std::max_element(row, row + classes) - row;
      total -= row[best];
      if (best != before && best != classes - 1) labels[count++] = best;
      before = best;
    }
    *loss = total;
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const Shape& y = k.in_shape(0);
    ctc::check_lengths(kDecode, "input_length", k, 1, y[1]);
    std::fill_n(k.output<std::int64_t>(), y[0] * y[1], std::int64_t{-1});
    with_floating(k.in_dtype(0), [&]<class T>(T) {
      kernels::parallel_for(y[0], static_cast<double>(y[1] * (3 + y[2])), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          decode(k.input<T>(0) + i * y[1] * y[2], k.input<std::int32_t>(1)[i], y[2],
                 k.output<std::int64_t>() + i * y[1], k.output<T>(1) + i);
      });
    });
  }
  static constexpr NoGradient grad{"labels are piecewise constant, and the probability is that of a choice"};
};

// Inputs: those of CtcGreedy. Outputs: labels (samples, top_paths, time), log P (samples, top_paths).
struct CtcBeamSearch {
  static constexpr std::string_view kName = "ctc_beam_search";
  struct Attrs {
    int beam_width = 100;
    int top_paths = 1;
    bool merge_repeated = false;
  };
  static constexpr auto fields =
      std::tuple{field("beam_width", &Attrs::beam_width), field("top_paths", &Attrs::top_paths),
                 field("merge_repeated", &Attrs::merge_repeated)};
  static std::vector<Meta> infer(const Attrs& a, std::span<const Meta> in) {
    if (a.beam_width < 1 || a.top_paths < 1 || a.top_paths > a.beam_width)
      fail<ValueError>(kDecode, ": beam_width is ", a.beam_width, " and top_paths ", a.top_paths,
                       "; top_paths must be from 1 to beam_width");
    check_operands(in);
    const Shape& y = in[0].shape;
    return {{DType::kInt64, Shape{y[0], a.top_paths, y[1]}}, {in[0].dtype, Shape{y[0], a.top_paths}}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_samples(args); }
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }

  static kernels::Chunks chunks(const Attrs& a, const Shape& y) {
    return ctc::sample_chunks(y[0], static_cast<double>(y[1] * (20 + 3 * y[2] * a.beam_width)));
  }
  // Scratch memory of one chunk: the beam search, and the log probabilities of a step.
  static std::size_t chunk_bytes(const Attrs& a, const Shape& y) {
    return aligned(ctc::BeamSearch::memory(y[1], y[2], a.beam_width) + static_cast<std::size_t>(y[2]) * sizeof(double));
  }
  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta>) {
    return static_cast<std::size_t>(chunks(a, in[0].shape).count) * chunk_bytes(a, in[0].shape);
  }

  // Log probabilities of a step, normalized so that the probabilities sum to one.
  template <class T>
  static void normalize(const T* row, std::int64_t classes, double* scores) {
    const auto top = static_cast<double>(*std::max_element(row, row + classes));
    double total = 0;
    for (std::int64_t c = 0; c < classes; ++c) total += std::exp(static_cast<double>(row[c]) - top);
    const double shift = top + std::log(total);
    for (std::int64_t c = 0; c < classes; ++c) scores[c] = static_cast<double>(row[c]) - shift;
  }
  template <class T>
  static void decode(const Attrs& a, const KernelArgs& k, std::int64_t i, std::byte* memory) {
    const Shape& y = k.in_shape(0);
    ctc::BeamSearch search(memory, y[1], y[2], a.beam_width);
    auto* scores = reinterpret_cast<double*>(memory + ctc::BeamSearch::memory(y[1], y[2], a.beam_width));
    for (std::int64_t t = 0; t < k.input<std::int32_t>(1)[i]; ++t) {
      normalize(k.input<T>(0) + (i * y[1] + t) * y[2], y[2], scores);
      search.advance(scores);
    }
    for (std::int64_t path = 0; path < a.top_paths; ++path) {
      const std::int64_t row = i * a.top_paths + path;
      const bool found = path < search.size();
      if (found) search.labels(path, a.merge_repeated, k.output<std::int64_t>() + row * y[1]);
      k.output<T>(1)[row] = found ? static_cast<T>(search.log_probability(path)) : -std::numeric_limits<T>::infinity();
    }
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& y = k.in_shape(0);
    ctc::check_lengths(kDecode, "input_length", k, 1, y[1]);
    std::fill_n(k.output<std::int64_t>(), k.out_shape().size(), std::int64_t{-1});
    const std::size_t bytes = chunk_bytes(a, y);
    with_floating(k.in_dtype(0), [&]<class T>(T) {
      kernels::parallel_chunks(chunks(a, y), [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
        std::byte* memory = static_cast<std::byte*>(k.scratch) + static_cast<std::size_t>(chunk) * bytes;
        for (std::int64_t i = begin; i < end; ++i) decode<T>(a, k, i, memory);
      });
    });
  }
  static constexpr NoGradient grad{"labels are piecewise constant, and the probability is that of a choice"};
};

SYNCLINE_REGISTER_OP(CtcGreedy)
SYNCLINE_REGISTER_OP(CtcBeamSearch)

}  // namespace

CtcDecoded ctc_decode(const Expr& y_pred, const Expr& input_length, const CtcDecodeOptions& options) {
  ctc::check_logits(kDecode, y_pred.meta());
  const std::vector<Expr> inputs{log(y_pred + options.epsilon), ctc::flat_lengths(kDecode, input_length)};
  if (options.greedy) {
    const Expr found = apply<CtcGreedy>(inputs);
    return {{found}, Expr(found.handle(), 1)};
  }
  const Expr found = apply<CtcBeamSearch>(inputs, {options.beam_width, options.top_paths, options.merge_repeated});
  CtcDecoded result{{}, Expr(found.handle(), 1)};
  for (int path = 0; path < options.top_paths; ++path)
    result.decoded.push_back(squeeze(slice_axis(found, 1, path, 1), 1));
  return result;
}

}  // namespace syncline
