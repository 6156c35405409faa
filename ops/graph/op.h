// OpDef: one operation, type-erased to function pointers. A single struct defines an op completely:
//
//   struct Softmax {
//     static constexpr std::string_view kName = "softmax";
//     struct Attrs { int axis = -1; };
//     static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
//     static Meta infer(const Attrs&, std::span<const Meta> in);  // the only shape and dtype check
//     static Placed place(const Attrs&, const PlaceArgs&);        // placements of inputs and outputs
//     static void run(const Attrs&, const KernelArgs&);           // the kernel; elementwise ops define `block` instead
//     static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
//     // or: static constexpr NoGradient grad{"why"};
//   };
//   SYNCLINE_REGISTER_OP(Softmax)
//
// A missing member is a compile error (concept OpDefinition). `infer` runs when a node is built (dimensions may be
// unknown) and again with the fed shapes. `grad` uses the public ops, so second derivatives need no extra code; it
// returns one Expr per input, empty for an input without a gradient. Optional members: `accumulate` (accumulates a sum
// over rows in parts), `scratch` (bytes that a kernel needs besides its buffers), `simplify` (a cheaper form once
// shapes are known), `hoist` (moves work out of a loop), `strided_view` (the output as a strided view of the input),
// `may_throw` (whether the kernel may throw), `flops` and `bytes` (what a call takes, if not plain_work), kMovesData
// (it takes moved_work), `run_program` and `takes_program` (of reductions), `parts_scratch`, `known_elements` (those
// that are known while a graph is built), kView, kInPlace, kTakesEpilogue, kEffect, kShapeOnly, kLeaf, kTakesFloat16
// (below). Ops are registered before main; the registry is immutable afterwards.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/graph/attrs.h"
#include "ops/graph/known_elements.h"
#include "ops/graph/placement.h"
#include "ops/graph/work.h"
#include "syncline/expr.h"

namespace syncline {

struct RandomOp;
namespace kernels {
class Epilogue;
struct FusedProgram;
}  // namespace kernels

// The part of a split output that this rank computes: its elements start at `begin` along `axis` of a dimension of
// `size` elements.
struct OutputSlice {
  int axis = 0;
  std::int64_t begin = 0;
  std::int64_t size = 1;
};

// The parts of a rank's rows (syncline/distributed/data_parallel.h): part i has the elements [begin[i], begin[i + 1])
// of input 0 along `axis`. An op that sums over the rows adds the sums of the parts along one binary tree
// (ops/kernels/part_tree.h). The number of parts is a power of two. No parts: the order of the sum is the op's choice.
struct RowParts {
  int axis = 0;
  std::span<const std::int64_t> begin;

  bool empty() const { return begin.empty(); }
  std::size_t count() const { return begin.empty() ? 0 : begin.size() - 1; }
};

// The arguments of a kernel. All buffers are C-ordered and sized by the local metas; temporaries are 64-byte aligned.
struct KernelArgs {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  std::span<const Meta> in_meta;
  std::span<const Meta> out_meta;
  void* scratch = nullptr;                      // the bytes that the op's `scratch` requested
  const std::uint64_t* random_runs = nullptr;   // how often the random op has run; selects new numbers
  OutputSlice slice;                            // of output 0, in the global value
  bool is_primary = true;                       // true on the one rank that writes output for the job
  RowParts parts;                               // only for ops with `parts_scratch`
  const kernels::Epilogue* epilogue = nullptr;  // only for ops with kTakesEpilogue (ops/kernels/epilogue.h)

  template <class T>
  const T* input(int i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i = 0) const {
    return static_cast<T*>(out[i]);
  }
  const Shape& in_shape(int i) const { return in_meta[static_cast<std::size_t>(i)].shape; }
  const Shape& out_shape(int i = 0) const { return out_meta[static_cast<std::size_t>(i)].shape; }
  DType in_dtype(int i) const { return in_meta[static_cast<std::size_t>(i)].dtype; }
  DType out_dtype(int i = 0) const { return out_meta[static_cast<std::size_t>(i)].dtype; }
};

// The position of a value within another: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ...
// Offset and strides count elements.
struct StridedView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

// Computes n elements of an elementwise op; each of `in` points to n elements. Plans chain these functions over blocks
// that stay in the first-level cache.
using BlockFn = void (*)(const void* const* in, void* out, std::int64_t n);

// Why an op has no gradient.
struct NoGradient {
  std::string_view why;
};

struct OpDef {
  std::string_view name;
  std::vector<Meta> (*infer)(const void* attrs, std::span<const Meta> in) = nullptr;
  Placed (*place)(const void* attrs, const PlaceArgs& args) = nullptr;
  // One of the next three is set.
  void (*run)(const void* attrs, const KernelArgs& args) = nullptr;
  BlockFn (*block)(const void* attrs, std::span<const Meta> in) = nullptr;
  bool view = false;  // output 0 shares the bytes of input 0
  // Adds to output 0. For ops that sum over the first axis of their inputs: `run` computes the first part, `accumulate`
  // adds the following parts.
  void (*accumulate)(const void* attrs, const KernelArgs& args) = nullptr;
  // For reductions: `run` with an operand that the program computes a tile at a time. The inputs are the program's, but
  // the meta of input 0 is that of the operand. `takes_program`: whether this is possible for the operand's meta.
  void (*run_program)(const void* attrs, const KernelArgs& args, const kernels::FusedProgram& program) = nullptr;
  bool (*takes_program)(const void* attrs, const Meta& operand) = nullptr;
  // The bytes of KernelArgs::scratch for `run`, `accumulate` and `run_program` with these metas and this slice.
  std::size_t (*scratch)(const void* attrs, std::span<const Meta> in, std::span<const Meta> out,
                         const OutputSlice& slice) = nullptr;
  std::vector<Expr> (*grad)(const Expr& y, std::span<const Expr> dy) = nullptr;  // null: see no_gradient
  std::string_view no_gradient;
  // Returns a cheaper expression of equal value once shapes are known, or empty. Only for rewrites of this op itself.
  Expr (*simplify)(const void* attrs, std::span<const Expr> in, const Meta& out) = nullptr;
  // In a loop body, once shapes are known: returns an equal expression with an operand that depends only on inputs that
  // are equal in every iteration (`fixed`), so that this operand is computed before the loop; or empty.
  Expr (*hoist)(const void* attrs, std::span<const Expr> in, const std::vector<bool>& fixed) = nullptr;
  // Of output 0, whose shape is known; `known` are those of the inputs (ops/graph/known_elements.h).
  KnownElements (*known_elements)(const void* attrs, std::span<const Expr> in,
                                  std::span<const KnownElements> known) = nullptr;
  // The position of output 0 within input 0, for the given metas. Elementwise ops then read the input directly.
  StridedView (*strided_view)(const void* attrs, const Meta& in) = nullptr;
  // True if `run` or `block` throws for some values of operands with these metas (an index outside its table). A step
  // writes no variable before all such ops have finished (runtime/passes/commit.cc). Null: the op never throws.
  bool (*may_throw)(const void* attrs, std::span<const Meta> in) = nullptr;
  // Of one call, for profiles.
  Work (*work)(const void* attrs, std::span<const Meta> in, std::span<const Meta> out) = nullptr;
  RandomOp* (*random_op)(const void* attrs) = nullptr;  // see random_op_of
  // The bytes of scratch memory that `run` and `run_program` need with KernelArgs::parts; none if they do not support
  // these parts. Then, and where this is null, a plan runs the op once for each part (runtime/plan/part_sum.h), which
  // gives the same bits.
  std::optional<std::size_t> (*parts_scratch)(const void* attrs, std::span<const Meta> in,
                                              const RowParts& parts) = nullptr;
  bool effect = false;          // has a side effect: never folded, merged with an equal node or repeated
  bool in_place = false;        // output 0 may share the buffer of input 0
  bool takes_epilogue = false;  // `run` supports KernelArgs::epilogue for floating dtypes
  bool shape_only = false;      // the result depends only on the shapes of the inputs
  bool leaf = false;            // a placeholder, variable or constant; has no kernel
  // The op moves, creates or converts elements, or reads only their shape, so its kernel supports float16. Other ops
  // accept float16 in `infer`, and plans run them in float32 (runtime/graph/half_precision.h).
  bool takes_float16 = false;
  bool sparse = false;  // a sparse tensor (ops/sparse/tensor.h), which no op takes as an input

  std::uint64_t (*hash)(const void* attrs) = nullptr;
  bool (*equal)(const void* a, const void* b) = nullptr;
  std::string (*print)(const void* attrs) = nullptr;
};

template <class Op>
concept OpDefinition = requires(const typename Op::Attrs& a, std::span<const Meta> in, const PlaceArgs& p) {
  { Op::kName } -> std::convertible_to<std::string_view>;
  Op::fields;
  Op::infer(a, in);
  { Op::place(a, p) } -> std::same_as<Placed>;
  Op::grad;
}
&&(
    requires { Op::run; } || requires { Op::block; } || requires { Op::kView; } || requires { Op::kLeaf; } ||
    requires { Op::simplify; });

namespace detail {

template <class Op>
std::vector<Meta> infer(const void* attrs, std::span<const Meta> in) {
  const auto& a = *static_cast<const typename Op::Attrs*>(attrs);
  if constexpr (std::is_same_v<decltype(Op::infer(a, in)), Meta>) return {Op::infer(a, in)};
  else return Op::infer(a, in);
}

template <class Op>
std::vector<Expr> grad(const Expr& y, std::span<const Expr> dy) {
  const auto& a = y.attrs<typename Op::Attrs>();
  if constexpr (std::is_invocable_v<decltype(Op::grad), decltype(a), const Expr&, std::span<const Expr>>)
    return Op::grad(a, y, dy);
  else return Op::grad(a, y, dy[0]);
}

template <class Op>
Work work(const void* attrs, std::span<const Meta> in, std::span<const Meta> out) {
  Work work = plain_work(in, out);
  if constexpr (requires { Op::kMovesData; }) work = moved_work(in, out);
  if constexpr (requires { Op::kShapeOnly; }) work = moved_work({}, out);
  [[maybe_unused]] const auto& a = *static_cast<const typename Op::Attrs*>(attrs);
  if constexpr (requires { Op::flops; }) work.flops = Op::flops(a, in, out);
  if constexpr (requires { Op::bytes; }) work.bytes = Op::bytes(a, in, out);
  return work;
}

template <class Op>
std::size_t scratch(const void* attrs, std::span<const Meta> in, std::span<const Meta> out, const OutputSlice& slice) {
  const auto& a = *static_cast<const typename Op::Attrs*>(attrs);
  if constexpr (requires { Op::scratch(a, in, out, slice); }) return Op::scratch(a, in, out, slice);
  else return Op::scratch(a, in, out);
}

template <class Op>
std::optional<std::size_t> parts_scratch(const void* attrs, std::span<const Meta> in, const RowParts& parts) {
  return Op::parts_scratch(*static_cast<const typename Op::Attrs*>(attrs), in, parts);
}

template <class Op>
KnownElements known_elements(const void* attrs, std::span<const Expr> in, std::span<const KnownElements> known) {
  return Op::known_elements(*static_cast<const typename Op::Attrs*>(attrs), in, known);
}

template <class Op>
bool may_throw(const void* attrs, std::span<const Meta> in) {
  return Op::may_throw(*static_cast<const typename Op::Attrs*>(attrs), in);
}

template <class Op>
OpDef make_def() {
  using Attrs = typename Op::Attrs;
  OpDef def;
  def.name = Op::kName;
  def.infer = &infer<Op>;
  def.place = [](const void* a, const PlaceArgs& p) { return Op::place(*static_cast<const Attrs*>(a), p); };
  if constexpr (requires { Op::run; })
    def.run = [](const void* a, const KernelArgs& k) { Op::run(*static_cast<const Attrs*>(a), k); };
  if constexpr (requires { Op::accumulate; })
    def.accumulate = [](const void* a, const KernelArgs& k) { Op::accumulate(*static_cast<const Attrs*>(a), k); };
  if constexpr (requires { Op::run_program; }) {
    def.run_program = [](const void* a, const KernelArgs& k, const kernels::FusedProgram& program) {
      Op::run_program(*static_cast<const Attrs*>(a), k, program);
    };
    def.takes_program = [](const void* a, const Meta& operand) {
      return Op::takes_program(*static_cast<const Attrs*>(a), operand);
    };
  }
  if constexpr (requires { Op::block; })
    def.block = [](const void* a, std::span<const Meta> in) { return Op::block(*static_cast<const Attrs*>(a), in); };
  if constexpr (requires { Op::scratch; }) def.scratch = &scratch<Op>;
  if constexpr (requires { Op::parts_scratch; }) def.parts_scratch = &parts_scratch<Op>;
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(Op::grad)>, NoGradient>) def.no_gradient = Op::grad.why;
  else def.grad = &grad<Op>;
  if constexpr (requires { Op::simplify; })
    def.simplify = [](const void* a, std::span<const Expr> in, const Meta& out) {
      return Op::simplify(*static_cast<const Attrs*>(a), in, out);
    };
  if constexpr (requires { Op::hoist; })
    def.hoist = [](const void* a, std::span<const Expr> in, const std::vector<bool>& fixed) {
      return Op::hoist(*static_cast<const Attrs*>(a), in, fixed);
    };
  if constexpr (requires { Op::known_elements; }) def.known_elements = &known_elements<Op>;
  if constexpr (requires { Op::strided_view; })
    def.strided_view = [](const void* a, const Meta& in) {
      return Op::strided_view(*static_cast<const Attrs*>(a), in);
    };
  if constexpr (requires { Op::may_throw; }) def.may_throw = &may_throw<Op>;
  def.work = &work<Op>;
  def.view = requires { Op::kView; };
  if constexpr (requires { &Attrs::random_op; })
    def.random_op = [](const void* a) { return static_cast<const Attrs*>(a)->random_op.get(); };
  def.effect = requires { Op::kEffect; };
  def.in_place = requires { Op::kInPlace; };
  def.takes_epilogue = requires { Op::kTakesEpilogue; };
  def.shape_only = requires { Op::kShapeOnly; };
  def.leaf = requires { Op::kLeaf; };
  def.takes_float16 = requires { Op::kTakesFloat16; };
  def.takes_float16 = def.takes_float16 || def.view || def.leaf || (!def.run && !def.block);
  def.sparse = requires { Op::kSparse; };
  def.hash = &attrs::hash<Op>;
  def.equal = &attrs::equal<Op>;
  def.print = &attrs::print<Op>;
  return def;
}

}  // namespace detail

// Returns the only OpDef instance of an op.
template <OpDefinition Op>
const OpDef& def_of() {
  static const OpDef def = detail::make_def<Op>();
  return def;
}

template <class Op>
bool Expr::is() const {
  return node_ != nullptr && node_->op == &def_of<Op>();
}

// Returns the random operation of a node that draws numbers, or null.
inline RandomOp* random_op_of(const Node& node) {
  return node.op->random_op == nullptr ? nullptr : node.op->random_op(node.attrs.get());
}

// Builds a node. Throws what the `infer` of the op throws.
std::shared_ptr<const Node> make_node(const OpDef& op, std::shared_ptr<const void> attrs, std::vector<Expr> inputs,
                                      std::string name = {});

template <OpDefinition Op>
Expr apply(std::vector<Expr> inputs, typename Op::Attrs attrs = {}, std::string name = {}) {
  return Expr(make_node(def_of<Op>(), std::make_shared<typename Op::Attrs>(std::move(attrs)), std::move(inputs),
                        std::move(name)));
}

// All registered ops by name, sorted.
std::span<const OpDef* const> registered_ops();
// Returns null if no op has that name.
const OpDef* find_op(std::string_view name);
bool register_op(const OpDef& op);

#define SYNCLINE_REGISTER_OP(Op) \
  [[maybe_unused]] static const bool registered_##Op = ::syncline::register_op(::syncline::def_of<Op>());

}  // namespace syncline
