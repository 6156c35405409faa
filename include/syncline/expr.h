// Expr: a handle to one value of the graph. Node: one operation applied to inputs.
//
// A graph consists of nodes that point to their inputs; it holds no values but those of constants. Nodes are immutable
// once built, with one exception: a loop's outputs (its residuals) grow. A node is freed when no Expr reaches it; no
// global owns nodes. Threads may build different graphs at the same time, but only one thread may build a given graph.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "syncline/dtype.h"
#include "syncline/shape.h"

#pragma GCC visibility push(default)
namespace syncline {

struct OpDef;
struct Node;

// What is known about a value before it is computed.
struct Meta {
  DType dtype = DType::kFloat32;
  Shape shape;
  friend bool operator==(const Meta&, const Meta&) = default;
};

std::ostream& operator<<(std::ostream& out, const Meta& meta);

class Expr {
 public:
  Expr() = default;  // empty: "no value", for example an absent gradient
  explicit Expr(std::shared_ptr<const Node> node, int output = 0) : node_(std::move(node)), output_(output) {}

  explicit operator bool() const { return node_ != nullptr; }
  // Throws ValueError if the expression is empty, as do all functions below.
  const Node& node() const {
    if (!node_) throw_empty();
    return *node_;
  }
  const std::shared_ptr<const Node>& handle() const { return node_; }
  int output() const { return output_; }

  const Meta& meta() const;
  DType dtype() const { return meta().dtype; }
  const Shape& shape() const { return meta().shape; }
  int ndim() const { return shape().ndim(); }
  const OpDef& op() const;
  const Expr& input(int i) const;
  const std::string& name() const;
  // The attributes as the op's own struct. Unchecked: the caller knows the op.
  template <class Attrs>
  const Attrs& attrs() const;
  template <class Op>
  bool is() const;

  // Identity, not value: the same output of the same node.
  friend bool operator==(const Expr& a, const Expr& b) { return a.node_ == b.node_ && a.output_ == b.output_; }

 private:
  [[noreturn]] static void throw_empty();

  std::shared_ptr<const Node> node_;
  int output_ = 0;
};

struct Node {
  std::uint64_t id = 0;  // counts up: inputs have smaller ids than their users
  const OpDef* op = nullptr;
  std::shared_ptr<const void> attrs;
  std::vector<Expr> inputs;
  mutable std::vector<Meta> outputs;  // building the gradients of a loop appends outputs
  std::string name;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // iterative: a chain of any length is freed without recursion
};

inline const Expr& Expr::input(int i) const { return node().inputs[static_cast<std::size_t>(i)]; }
inline const Meta& Expr::meta() const { return node().outputs[static_cast<std::size_t>(output_)]; }
inline const OpDef& Expr::op() const { return *node().op; }
inline const std::string& Expr::name() const { return node().name; }
template <class Attrs>
const Attrs& Expr::attrs() const {
  return *static_cast<const Attrs*>(node().attrs.get());
}

// By id, not by address: the same in each run.
struct ExprHash {
  std::size_t operator()(const Expr& e) const {
    return e.handle() ? e.handle()->id + (static_cast<std::size_t>(e.output()) << 40) : 0;
  }
};

// The nodes that `roots` depend on, inputs before users (sorted by id).
std::vector<std::shared_ptr<const Node>> nodes_under(std::span<const Expr> roots);

}  // namespace syncline
#pragma GCC visibility pop
