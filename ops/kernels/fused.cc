// y = f(g(x), h(z), ...) over blocks of at most 4 KiB an operand.
#include "ops/kernels/fused.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/chain.h"
#include "ops/kernels/find_chains.h"
#include "ops/kernels/parallel.h"

namespace syncline::kernels {
namespace {

using Input = FusedProgram::Input;

// Calls run(at, count) for elements [begin, begin + n) of a strided operand, one run of the innermost dimension at a
// time; at: where the run's first element lies.
template <class Run>
void for_runs(const Input& input, std::int64_t begin, std::int64_t n, Run run) {
  const int ndim = static_cast<int>(input.dims.size());
  std::int64_t index[16] = {};
  std::int64_t rest = begin, at = input.offset;
  for (int d = ndim - 1; d >= 0; --d) {
    index[d] = rest % input.dims[d];
    rest /= input.dims[d];
    at += index[d] * input.stride[d];
  }
  const std::int64_t inner = input.dims[ndim - 1];
  while (n > 0) {
    const std::int64_t count = std::min(n, inner - index[ndim - 1]);
    run(at, count);
    n -= count;
    at -= index[ndim - 1] * input.stride[ndim - 1];
    index[ndim - 1] = 0;
    for (int d = ndim - 2; d >= 0; --d) {
      at += input.stride[d];
      if (++index[d] < input.dims[d]) break;
      at -= input.dims[d] * input.stride[d];
      index[d] = 0;
    }
  }
}

// Lays out elements [begin, begin + n) of a broadcast operand.
template <class T>
void lay_out(const Input& input, const T* x, std::int64_t begin, std::int64_t n, T* y) {
  const bool one = input.stride.back() == 0;
  for_runs(input, begin, n, [&](std::int64_t at, std::int64_t count) {
    if (one) std::fill_n(y, count, x[at]);
    else std::memcpy(y, x + at, static_cast<std::size_t>(count) * sizeof(T));
    y += count;
  });
}

void lay_out_bytes(const Input& input, const void* x, std::int64_t begin, std::int64_t n, void* y) {
  auto go = [&]<class T>(T) { lay_out(input, static_cast<const T*>(x), begin, n, static_cast<T*>(y)); };
  if (input.element == 1) go(std::uint8_t{});
  else if (input.element == 2) go(std::uint16_t{});
  else if (input.element == 4) go(std::uint32_t{});
  else go(std::uint64_t{});
}

// The other way: elements [begin, begin + n) to where they lie.
void put(const Input& place, const void* x, std::int64_t begin, std::int64_t n, void* y) {
  const std::size_t element = place.element;
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  auto copy = [&](std::int64_t at, std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * element;
    std::memcpy(to + static_cast<std::size_t>(at) * element, from, bytes);
    from += bytes;
  };
  if (place.spread == Input::kFull) copy(place.offset + begin, n);
  else for_runs(place, begin, n, copy);
}

struct Buffers {
  alignas(64) std::byte at[kFusedBuffers][kFusedBlockBytes];
};

// Operands that look the same in every block are laid out once.
void lay_out_constant_inputs(const FusedProgram& p, const void* const* in, Buffers& buffers) {
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const Input& input = p.inputs[i];
    if (input.buffer < 0 || input.spread == Input::kStrided) continue;
    lay_out_bytes(input, in[i], 0, std::min(p.block, p.size), buffers.at[input.buffer]);
  }
}

void run_links(const FusedProgram::Instruction& code, const void* const* regs, void* const* results, std::int64_t n) {
  ChainLink links[kLongestChain];
  for (std::size_t i = 0; i < code.links.size(); ++i) {
    const FusedProgram::Link& link = code.links[i];
    links[i] = {link.code, link.in < 0 ? nullptr : regs[link.in], results[i]};
  }
  run_chain(code.dtype, regs[code.in[0]], {links, code.links.size()}, n);
}

void run_blocks(const FusedProgram& p, const void* const* in, void* const* out, std::int64_t first, std::int64_t last) {
  Buffers buffers;  // not initialized: every byte read is written first
  const void* regs[kFusedRegisters];
  lay_out_constant_inputs(p, in, buffers);
  for (std::int64_t b = first; b < last; ++b) {
    const std::int64_t begin = b * p.block, n = std::min(p.block, p.size - begin);
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      const Input& input = p.inputs[i];
      if (input.buffer < 0) {
        const std::int64_t at = input.spread == Input::kPeriodic ? begin % input.period
                                : input.spread == Input::kScalar ? 0
                                                                 : begin;
        regs[i] = static_cast<const std::byte*>(in[i]) + (input.offset + at) * input.element;
      } else {
        if (input.spread == Input::kStrided) lay_out_bytes(input, in[i], begin, n, buffers.at[input.buffer]);
        regs[i] = buffers.at[input.buffer];
      }
    }
    auto place = [&](std::int16_t reg) -> void* {
      const auto& result = p.results[static_cast<std::size_t>(reg) - p.inputs.size()];
      if (result.output >= 0) return static_cast<std::byte*>(out[result.output]) + begin * result.element;
      return result.buffer >= 0 ? buffers.at[result.buffer] : nullptr;
    };
    for (const auto& code : p.code) {
      if (code.links.empty()) {
        const void* operands[3] = {regs[code.in[0]], regs[code.in[1]], regs[code.in[2]]};
        void* y = place(code.out);
        code.fn(code.attrs.get(), operands, y, n);
        regs[code.out] = y;
      } else {
        void* results[kLongestChain];
        for (std::size_t i = 0; i < code.links.size(); ++i) results[i] = place(code.links[i].out);
        run_links(code, regs, results, n);
        for (std::size_t i = 0; i < code.links.size(); ++i) regs[code.links[i].out] = results[i];
      }
    }
    for (const auto& store : p.stores) put(store.place, regs[store.reg], begin, n, out[store.output]);
  }
}

// Right-aligned strides of an operand in the iteration space, with dimensions that follow each other collapsed.
Input describe(const Meta& meta, const StridedWindow& window, const Shape& space) {
  Input input;
  input.element = static_cast<std::uint8_t>(size_of(meta.dtype));
  input.offset = window.offset;
  if (meta.shape == space && window.strides.empty()) return input;
  const int lead = space.ndim() - meta.shape.ndim();
  std::int64_t step = 1;
  for (int axis = space.ndim() - 1; axis >= 0; --axis) {
    const std::int64_t dim = axis >= lead ? meta.shape[axis - lead] : 1;
    if (space[axis] == 1) continue;
    const std::int64_t stride = dim == 1                 ? 0
                                : window.strides.empty() ? step
                                                         : window.strides[static_cast<std::size_t>(axis - lead)];
    if (!input.dims.empty() && stride == input.stride.back() * input.dims.back()) {
      input.dims.back() *= space[axis];
    } else {
      input.dims.push_back(space[axis]);
      input.stride.push_back(stride);
    }
    step *= dim;
  }
  std::reverse(input.dims.begin(), input.dims.end());
  std::reverse(input.stride.begin(), input.stride.end());
  if (input.dims.empty() || (input.dims.size() == 1 && input.stride[0] != 0)) {
    input.spread = Input::kFull;
  } else if (input.dims.size() == 1) {
    input.spread = Input::kScalar;
  } else if (input.dims.size() == 2 && input.stride[0] == 0) {
    input.spread = Input::kPeriodic;
    input.period = input.dims[1];
  } else {
    input.spread = Input::kStrided;
  }
  return input;
}

// A block holds whole periods, or lies within one, so that periodic operands need no work a block.
void choose_block(FusedProgram& p, std::size_t widest) {
  p.block = static_cast<std::int64_t>(kFusedBlockBytes / widest);
  std::int64_t period = 1;
  for (const Input& input : p.inputs)
    if (input.spread == Input::kPeriodic) period = std::max(period, input.period);
  if (period <= p.block) {
    p.block = p.block / period * period;
  } else {
    for (std::int64_t parts = (period + p.block - 1) / p.block; parts <= 4 * (period / p.block + 1); ++parts)
      if (period % parts == 0) {
        p.block = period / parts;
        break;
      }
  }
}

int take_buffer(std::vector<bool>& used) {
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) {
      used[i] = true;
      return static_cast<int>(i);
    }
  fail<InternalError>("fused program needs more than ", used.size(), " buffers");
}

// Chains take a number as it is (`number_only`).
void place_inputs(FusedProgram& p, const std::vector<bool>& number_only, std::vector<bool>& used) {
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    Input& input = p.inputs[i];
    bool lay = (input.spread == Input::kScalar && !number_only[i]) || input.spread == Input::kStrided;
    if (input.spread == Input::kPeriodic) {
      if (p.block % input.period == 0) lay = true;
      else if (input.period % p.block != 0) {
        input.spread = Input::kStrided;
        lay = true;
      }
    }
    if (lay) input.buffer = take_buffer(used);
  }
}

// Turns a group of ops into instructions over block buffers.
class Fuser {
 public:
  explicit Fuser(const FusedSpec& spec)
      : inputs_(static_cast<int>(spec.inputs.size())),
        nodes_(static_cast<int>(spec.nodes.size())),
        metas_(spec.inputs),
        last_use_(static_cast<std::size_t>(inputs_ + nodes_), -1),
        used_(kFusedBuffers, false) {
    SYNCLINE_CHECK(inputs_ + nodes_ <= kFusedRegisters);
    std::vector<bool> is_number;
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      p_.inputs.push_back(
          describe(spec.inputs[i], spec.windows.empty() ? StridedWindow{} : spec.windows[i], spec.space));
      is_number.push_back(p_.inputs.back().spread == Input::kScalar);
    }
    chains_ = find_chains(spec, is_number);
    spec_ = reorder(spec, chains_);
    for (int i = 0; i < nodes_; ++i)
      for (const int operand : spec_.nodes[i].operands) last_use_[reg_of(operand)] = i;
  }

  FusedProgram run() {
    std::size_t widest = 1;
    for (const Meta& meta : spec_.inputs) widest = std::max(widest, size_of(meta.dtype));
    for (const FusedNode& node : spec_.nodes) widest = std::max(widest, size_of(node.out.dtype));
    p_.size = spec_.space.size();
    choose_block(p_, widest);
    place_inputs(p_, read_by_chains_only(), used_);
    int next = 0;
    for (const auto& chain : chains_) {
      if (chain.size() == 1) add(next);
      else add_chain(next, static_cast<int>(chain.size()));
      next += static_cast<int>(chain.size());
    }
    p_.cost = 0.15 * static_cast<double>(nodes_ + inputs_);
    return std::move(p_);
  }

 private:
  int reg_of(int operand) const { return operand >= 0 ? inputs_ + operand : ~operand; }

  // By input.
  std::vector<bool> read_by_chains_only() const {
    std::vector<bool> only(p_.inputs.size(), true);
    std::size_t next = 0;
    for (const auto& chain : chains_) {
      if (chain.size() == 1)
        for (const int operand : spec_.nodes[next].operands)
          if (operand < 0) only[static_cast<std::size_t>(~operand)] = false;
      next += chain.size();
    }
    return only;
  }

  void add(int i) {
    const FusedNode& node = spec_.nodes[i];
    FusedProgram::Instruction code;
    std::vector<Meta> operands;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      code.in[k] = static_cast<std::int16_t>(reg_of(node.operands[k]));
      operands.push_back(metas_[reg_of(node.operands[k])]);
    }
    code.attrs = node.attrs;
    code.fn = node.op->block(node.attrs.get(), operands);
    SYNCLINE_CHECK(code.fn != nullptr);
    code.out = static_cast<std::int16_t>(inputs_ + i);
    p_.code.push_back(std::move(code));
    add_result(i, /*wanted=*/true);
  }

  void add_chain(int first, int count) {
    FusedProgram::Instruction code;
    const auto& operands = spec_.nodes[first].operands;
    const int start = is_number(operands[0]) ? operands[1] : operands[0];
    code.in[0] = static_cast<std::int16_t>(reg_of(start));
    code.dtype = spec_.nodes[first].out.dtype;
    for (int i = first; i < first + count; ++i) {
      code.links.push_back(link(i, i == first ? start : i - 1));
      add_result(i, /*wanted=*/i + 1 == first + count);
    }
    p_.code.push_back(std::move(code));
  }

  bool is_number(int operand) const { return operand < 0 && p_.inputs[~operand].spread == Input::kScalar; }

  // Node i as the link of a chain whose value so far is `value`, one of its operands.
  FusedProgram::Link link(int i, int value) const {
    const FusedNode& node = spec_.nodes[i];
    FusedProgram::Link made{.out = static_cast<std::int16_t>(inputs_ + i)};
    Beside beside = Beside::kNothing;
    if (node.operands.size() == 2) {
      const bool first = node.operands[0] != value;
      const int other = node.operands[first ? 0 : 1];
      if (is_number(other)) beside = first ? Beside::kNumberFirst : Beside::kNumber;
      else beside = other == value ? Beside::kItself : first ? Beside::kBlockFirst : Beside::kBlock;
      made.in = static_cast<std::int16_t>(reg_of(other));
    }
    made.code = chain_code(node.op->name, beside);
    return made;
  }

  // Where node i's value goes. `wanted`: somewhere; otherwise only where the group's outputs want it.
  void add_result(int i, bool wanted) {
    metas_.push_back(spec_.nodes[i].out);
    const std::size_t stores = p_.stores.size();
    FusedProgram::Result result = result_of(i);
    // Operands that end here free their buffers: before the result takes one where elements are equally wide, since
    // blocks may run in place, and otherwise after it, since a result would overtake a narrower operand.
    free_dead_operands(i, result.element, /*same_width=*/true);
    if (result.output < 0 && (wanted || p_.stores.size() > stores)) result.buffer = take_buffer(used_);
    free_dead_operands(i, result.element, /*same_width=*/false);
    p_.results.push_back(result);
  }

  // Written straight into an output if no operand that lies there is read later; otherwise stored at the block's end.
  FusedProgram::Result result_of(int i) {
    FusedProgram::Result result{.element = static_cast<std::uint8_t>(size_of(spec_.nodes[i].out.dtype))};
    for (int j = 0; j < static_cast<int>(spec_.outputs.size()); ++j) {
      if (spec_.outputs[j] != i) continue;
      const int overwritten = spec_.overwrites.empty() ? -1 : spec_.overwrites[j];
      if (result.output < 0 && (overwritten < 0 || last_use_[overwritten] <= i)) result.output = j;
      else p_.stores.push_back({inputs_ + i, j, describe(spec_.nodes[i].out, {}, spec_.space)});
    }
    for (const FusedSpec::Part& part : spec_.parts)
      if (part.node == i)
        p_.stores.push_back({inputs_ + i, part.output, describe(spec_.nodes[i].out, part.window, spec_.space)});
    return result;
  }

  void free_dead_operands(int i, std::uint8_t element, bool same_width) {
    for (const int operand : spec_.nodes[i].operands) {
      if (operand < 0 || last_use_[reg_of(operand)] != i) continue;
      const auto& dead = p_.results[operand];
      const bool stored =
          std::any_of(p_.stores.begin(), p_.stores.end(), [&](const auto& s) { return s.reg == reg_of(operand); });
      if (dead.buffer >= 0 && !stored && (dead.element == element) == same_width) used_[dead.buffer] = false;
    }
  }

  FusedSpec spec_;                        // its nodes in the order of the chains
  std::vector<std::vector<int>> chains_;  // of the nodes as they were given
  const int inputs_, nodes_;
  std::vector<Meta> metas_;    // by register
  std::vector<int> last_use_;  // by register: the node
  std::vector<bool> used_;     // buffers
  FusedProgram p_;
};

}  // namespace

FusedProgram fuse(const FusedSpec& spec) { return Fuser(spec).run(); }

void run_fused(const FusedProgram& p, const void* const* in, void* const* out) {
  if (p.size == 0) return;
  const std::int64_t blocks = (p.size + p.block - 1) / p.block;
  const double cost = p.cost * static_cast<double>(std::min(p.block, p.size));
  parallel_for(blocks, cost, [&](std::int64_t first, std::int64_t last) { run_blocks(p, in, out, first, last); });
}

}  // namespace syncline::kernels
