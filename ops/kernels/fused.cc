// y = f(g(x), h(z), ...) over blocks of at most 4 KiB an operand.
#include "ops/kernels/fused.h"

#include <algorithm>
#include <cstring>

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

void run_blocks(const FusedProgram& p, const void* const* in, void* const* out, std::int64_t first, std::int64_t last) {
  Buffers buffers;  // not initialized: every byte read is written first
  const void* regs[kFusedRegisters];
  lay_out_constant_inputs(p, in, buffers);
  for (std::int64_t b = first; b < last; ++b) {
    const std::int64_t begin = b * p.block, n = std::min(p.block, p.size - begin);
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      const Input& input = p.inputs[i];
      if (input.buffer < 0) {
        const std::int64_t at = input.spread == Input::kPeriodic ? begin % input.period : begin;
        regs[i] = static_cast<const std::byte*>(in[i]) + (input.offset + at) * input.element;
      } else {
        if (input.spread == Input::kStrided) lay_out_bytes(input, in[i], begin, n, buffers.at[input.buffer]);
        regs[i] = buffers.at[input.buffer];
      }
    }
    for (std::size_t c = 0; c < p.code.size(); ++c) {
      const auto& code = p.code[c];
      const auto& result = p.results[c];
      void* y = result.output >= 0 ? static_cast<std::byte*>(out[result.output]) + begin * result.element
                                   : static_cast<void*>(buffers.at[result.buffer]);
      const void* operands[3] = {regs[code.in[0]], regs[code.in[1]], regs[code.in[2]]};
      code.fn(code.attrs.get(), operands, y, n);
      regs[code.out] = y;
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

void place_inputs(FusedProgram& p, std::vector<bool>& used) {
  for (Input& input : p.inputs) {
    bool lay = input.spread == Input::kScalar || input.spread == Input::kStrided;
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

// Turns a chain into instructions over block buffers.
class Fuser {
 public:
  explicit Fuser(const FusedSpec& spec)
      : spec_(spec),
        inputs_(static_cast<int>(spec.inputs.size())),
        nodes_(static_cast<int>(spec.nodes.size())),
        metas_(spec.inputs),
        last_use_(static_cast<std::size_t>(inputs_ + nodes_), -1),
        used_(kFusedBuffers, false) {
    SYNCLINE_CHECK(inputs_ + nodes_ <= kFusedRegisters);
    for (int i = 0; i < nodes_; ++i)
      for (const int operand : spec.nodes[i].operands) last_use_[reg_of(operand)] = i;
  }

  FusedProgram run() {
    std::size_t widest = 1;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const Meta& meta = spec_.inputs[i];
      p_.inputs.push_back(describe(meta, spec_.windows.empty() ? StridedWindow{} : spec_.windows[i], spec_.space));
      widest = std::max(widest, size_of(meta.dtype));
    }
    for (const FusedNode& node : spec_.nodes) widest = std::max(widest, size_of(node.out.dtype));
    p_.size = spec_.space.size();
    choose_block(p_, widest);
    place_inputs(p_, used_);
    for (int i = 0; i < nodes_; ++i) add(i);
    p_.cost = 0.15 * static_cast<double>(nodes_ + inputs_);
    return std::move(p_);
  }

 private:
  int reg_of(int operand) const { return operand >= 0 ? inputs_ + operand : ~operand; }

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
    metas_.push_back(node.out);
    FusedProgram::Result result = result_of(i);
    // Operands that end here free their buffers: before the result takes one where elements are equally wide, since
    // blocks may run in place, and otherwise after it, since a result would overtake a narrower operand.
    free_dead_operands(i, result.element, /*same_width=*/true);
    if (result.output < 0) result.buffer = take_buffer(used_);
    free_dead_operands(i, result.element, /*same_width=*/false);
    p_.code.push_back(std::move(code));
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

  const FusedSpec& spec_;
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
