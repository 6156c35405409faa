// OpDef: one operation, erased to function pointers from a struct that states everything about it in one place:
//
//   struct Softmax {
//     static constexpr std::string_view kName = "softmax";
//     struct Attrs { int axis = -1; };
//     static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
//     static Meta infer(const Attrs&, std::span<const Meta> in);            // the only shape and dtype check
//     static Placed place(const Attrs&, const PlaceArgs&);                  // what it does with a split axis
//     static void run(const Attrs&, const KernelArgs&);                     // the loop; or `block` for elementwise ops
//     static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);  // or: static constexpr NoGradient
//     grad{"why"};
//   };
//   SYNCLINE_REGISTER_OP(Softmax)
//
// A missing member is a compile error (the concept OpDefinition). `infer` runs when a node is built (dimensions may be
// unknown) and again with the fed shapes. `grad` is written in the public ops, so second derivatives come free; it
// returns one Expr an input, empty where the input has no gradient. Optional members: `run_more` (the sum over rows,
// part by part), `scratch` (bytes a kernel needs beside its buffers), `simplify` (a cheaper form once shapes are
// known), `prepare` (what a loop need not do in each turn), `window` (where its elements lie in its input),
// `may_refuse` (whether a step may end here), kView, kInPlace, kEffect, kShapeOnly, kLeaf, kTakesFloat16 (below).
// Registration happens before main; the registry is then immutable.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/graph/attrs.h"
#include "ops/graph/placement.h"
#include "syncline/expr.h"

namespace syncline {

struct RandomOp;

// Which part of a split output this rank computes: elements begin, begin + 1, ... along `axis` of a dimension of
// `size`.
struct Slice {
  int axis = 0;
  std::int64_t begin = 0;
  std::int64_t size = 1;
};

// What a kernel gets. All buffers are C-ordered, 64-byte aligned for temporaries, and sized by the (local) metas.
struct KernelArgs {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  std::span<const Meta> in_meta;
  std::span<const Meta> out_meta;
  void* scratch = nullptr;                     // as many bytes as the op's `scratch` asked for
  const std::uint64_t* random_step = nullptr;  // what a random op draws anew by: how often it has run
  Slice slice;                                 // of output 0, in the global value
  bool speaks = true;                          // this rank writes what the whole job writes once

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

// Where elements of a value lie in another one: element (i, j, ...) at offset + i * strides[0] + j * strides[1] + ...
// In elements, not bytes.
struct StridedWindow {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

// Computes n elements of an elementwise op; `in` are blocks of n elements. The plan chains these through blocks that
// stay in the first-level cache.
using BlockFn = void (*)(const void* attrs, const void* const* in, void* out, std::int64_t n);

// Why an op has no gradient.
struct NoGradient {
  std::string_view why;
};

struct OpDef {
  std::string_view name;
  std::vector<Meta> (*infer)(const void* attrs, std::span<const Meta> in) = nullptr;
  Placed (*place)(const void* attrs, const PlaceArgs& args) = nullptr;
  void (*run)(const void* attrs, const KernelArgs& args) = nullptr;         // or
  BlockFn (*block)(const void* attrs, std::span<const Meta> in) = nullptr;  // or
  bool view = false;                                                        // output 0 is input 0's bytes
  // Adds to what output 0 holds. For ops whose value is a sum over the elements of the inputs' first axis, which can
  // therefore be computed some of them at a time: `run` for the first, then `run_more`.
  void (*run_more)(const void* attrs, const KernelArgs& args) = nullptr;
  std::size_t (*scratch)(const void* attrs, std::span<const Meta> in, std::span<const Meta> out) = nullptr;
  std::vector<Expr> (*grad)(const Expr& y, std::span<const Expr> dy) = nullptr;  // null: see no_gradient
  std::string_view no_gradient;
  // Once shapes are known: a cheaper expression of the same value, or empty. Rewrites of the op itself only.
  Expr (*simplify)(const void* attrs, std::span<const Expr> in, const Meta& out) = nullptr;
  // In a loop's body, once shapes are known: an equal expression, or empty, one of whose operands depends only on
  // inputs that are the same in every turn (`fixed`) and is computed before the loop.
  Expr (*prepare)(const void* attrs, std::span<const Expr> in, const std::vector<bool>& fixed) = nullptr;
  // Where output 0 lies in input 0, of the given metas: elementwise ops then read it there.
  StridedWindow (*window)(const void* attrs, const Meta& in) = nullptr;
  // Whether `run` or `block` throws for some values of operands with these metas (an index outside its table). A step
  // writes no variable before it is past such an op (runtime/passes/commit.cc). Null: never.
  bool (*may_refuse)(const void* attrs, std::span<const Meta> in) = nullptr;
  RandomOp* (*random_op)(const void* attrs) = nullptr;  // see random_op_of
  bool effect = false;      // does something beside its output: never folded, joined with an equal node or repeated
  bool in_place = false;    // output 0 may be the same buffer as input 0
  bool shape_only = false;  // what it computes follows from the shapes of its inputs
  bool leaf = false;        // a placeholder, variable or constant: nothing to run
  // Moves, makes or converts elements (or needs only their shape), so float16 is a dtype like others. The other ops
  // accept float16 in `infer`, and plans run them on float32 instead (runtime/graph/half_precision.h).
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
OpDef make_def() {
  using Attrs = typename Op::Attrs;
  OpDef def;
  def.name = Op::kName;
  def.infer = &infer<Op>;
  def.place = [](const void* a, const PlaceArgs& p) { return Op::place(*static_cast<const Attrs*>(a), p); };
  if constexpr (requires { Op::run; })
    def.run = [](const void* a, const KernelArgs& k) { Op::run(*static_cast<const Attrs*>(a), k); };
  if constexpr (requires { Op::run_more; })
    def.run_more = [](const void* a, const KernelArgs& k) { Op::run_more(*static_cast<const Attrs*>(a), k); };
  if constexpr (requires { Op::block; })
    def.block = [](const void* a, std::span<const Meta> in) { return Op::block(*static_cast<const Attrs*>(a), in); };
  if constexpr (requires { Op::scratch; })
    def.scratch = [](const void* a, std::span<const Meta> in, std::span<const Meta> out) {
      return Op::scratch(*static_cast<const Attrs*>(a), in, out);
    };
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(Op::grad)>, NoGradient>) def.no_gradient = Op::grad.why;
  else def.grad = &grad<Op>;
  if constexpr (requires { Op::simplify; })
    def.simplify = [](const void* a, std::span<const Expr> in, const Meta& out) {
      return Op::simplify(*static_cast<const Attrs*>(a), in, out);
    };
  if constexpr (requires { Op::prepare; })
    def.prepare = [](const void* a, std::span<const Expr> in, const std::vector<bool>& fixed) {
      return Op::prepare(*static_cast<const Attrs*>(a), in, fixed);
    };
  if constexpr (requires { Op::window; })
    def.window = [](const void* a, const Meta& in) { return Op::window(*static_cast<const Attrs*>(a), in); };
  if constexpr (requires { Op::may_refuse; })
    def.may_refuse = [](const void* a, std::span<const Meta> in) {
      return Op::may_refuse(*static_cast<const Attrs*>(a), in);
    };
  def.view = requires { Op::kView; };
  if constexpr (requires { &Attrs::random_op; })
    def.random_op = [](const void* a) { return static_cast<const Attrs*>(a)->random_op.get(); };
  def.effect = requires { Op::kEffect; };
  def.in_place = requires { Op::kInPlace; };
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

// The op's one definition.
template <OpDefinition Op>
const OpDef& def_of() {
  static const OpDef def = detail::make_def<Op>();
  return def;
}

template <class Op>
bool Expr::is() const {
  return node_ != nullptr && node_->op == &def_of<Op>();
}

// The random operation of a node that draws numbers; null of all others.
inline RandomOp* random_op_of(const Node& node) {
  return node.op->random_op == nullptr ? nullptr : node.op->random_op(node.attrs.get());
}

// Builds a node: runs `infer`, throws what it throws.
std::shared_ptr<const Node> make_node(const OpDef& op, std::shared_ptr<const void> attrs, std::vector<Expr> inputs,
                                      std::string name = {});

template <OpDefinition Op>
Expr apply(std::vector<Expr> inputs, typename Op::Attrs attrs = {}, std::string name = {}) {
  return Expr(make_node(def_of<Op>(), std::make_shared<typename Op::Attrs>(std::move(attrs)), std::move(inputs),
                        std::move(name)));
}

// All registered ops by name, sorted.
std::span<const OpDef* const> registered_ops();
// Null if there is none of that name.
const OpDef* find_op(std::string_view name);
bool register_op(const OpDef& op);

#define SYNCLINE_REGISTER_OP(Op) \
  [[maybe_unused]] static const bool registered_##Op = ::syncline::register_op(::syncline::def_of<Op>());

}  // namespace syncline
