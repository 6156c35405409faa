// y = f(g(x), h(z), ...) over blocks of at most 4 KiB an operand.
#include "ops/kernels/fused/fused.h"

#include <algorithm>
#include <cstring>

#include "ops/kernels/fused/chain.h"
#include "ops/kernels/parallel.h"

namespace syncline::kernels {
namespace {

using Input = FusedProgram::Input;

// Calls run(at, count) for elements [begin, begin + n) of a strided operand, for one run of the innermost dimension at
// a time. `at`: position of the first element of the run.
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

// The position of element `begin` in an operand.
std::int64_t position(const Input& input, std::int64_t begin) {
  if (input.spread == Input::kFull) return input.offset + begin;
  if (input.spread == Input::kScalar) return input.offset;
  if (input.spread == Input::kPeriodic) return input.offset + begin % input.period;
  std::int64_t at = input.offset;
  for (std::size_t d = input.dims.size() - 1; d > 0; --d) {
    at += begin % input.dims[d] * input.stride[d];
    begin /= input.dims[d];
  }
  return at + begin * input.stride[0];
}

// Expands elements [begin, begin + n) of a broadcast operand into y.
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

// The inverse of lay_out: copies elements [begin, begin + n) to their positions in y.
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

// Expands operands that are equal in every block once.
void lay_out_constant_inputs(const FusedProgram& p, const void* const* in, Buffers& buffers) {
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const Input& input = p.inputs[i];
    if (input.buffer < 0 || (input.spread != Input::kScalar && input.spread != Input::kPeriodic)) continue;
    lay_out_bytes(input, in[i], 0, std::min(p.block, p.size), buffers.at[input.buffer]);
  }
}

// The address of a register in the block that begins at element `begin`. `at`: its address in the previous block,
// unless `is_first`: then there is none, or that block was not whole.
std::byte* find_place(const Input& place, std::byte* base, std::byte* at, std::int64_t begin, bool is_first) {
  if (is_first || place.step < 0) return base + position(place, begin) * place.element;
  return at + place.step * place.element;
}

// `within`: the position of element `begin` in its block.
void find_inputs(const FusedProgram& p, const void* const* in, std::int64_t begin, std::int64_t n, std::int64_t within,
                 bool is_first, Buffers& buffers, std::byte** regs) {
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const Input& input = p.inputs[i];
    if (input.buffer < 0) {
      // Registers also hold results, so they are not const. An input register is written only if an output shares its
      // memory.
      auto* base = const_cast<std::byte*>(static_cast<const std::byte*>(in[i]));
      regs[i] = find_place(input, base, regs[i], begin, is_first);
    } else {
      regs[i] = buffers.at[input.buffer];
      if (input.spread == Input::kStrided) lay_out_bytes(input, in[i], begin, n, regs[i]);
      else if (input.spread == Input::kComputed) static_cast<const BlockSource*>(in[i])->read(begin, n, regs[i]);
      else regs[i] += within * input.element;
    }
  }
}

void find_results(const FusedProgram& p, void* const* out, std::int64_t begin, bool is_first, Buffers& buffers,
                  std::byte** regs) {
  for (const auto& result : p.results) {
    if (result.output >= 0)
      *regs = find_place(result.place, static_cast<std::byte*>(out[result.output]), *regs, begin, is_first);
    else *regs = result.buffer >= 0 ? buffers.at[result.buffer] : nullptr;
    ++regs;
  }
}

void run_instruction(const FusedProgram::Instruction& code, std::byte* const* regs, std::int64_t n) {
  if (code.links.empty()) {
    const void* operands[3] = {regs[code.in[0]], regs[code.in[1]], regs[code.in[2]]};
    code.fn(operands, regs[code.out], n);
  } else {
    ChainLink links[kLongestChain];
    std::size_t count = 0;
    for (const auto& link : code.links)
      links[count++] = {link.code, link.in < 0 ? nullptr : regs[link.in], link.other < 0 ? nullptr : regs[link.other],
                        regs[link.out]};
    run_chain(code.dtype, regs[code.in[0]], {links, count}, n);
  }
}

// Runs elements [first, last).
void run_blocks(const FusedProgram& p, const void* const* in, void* const* out, std::int64_t first, std::int64_t last) {
  Buffers buffers;  // uninitialized: every byte is written before it is read
  std::byte* regs[kFusedRegisters] = {};
  lay_out_constant_inputs(p, in, buffers);
  std::int64_t within = first % p.block;
  bool is_first = true;
  for (std::int64_t begin = first; begin < last;) {
    const std::int64_t n = std::min(p.block - within, last - begin);
    find_inputs(p, in, begin, n, within, is_first, buffers, regs);
    find_results(p, out, begin, is_first, buffers, regs + p.inputs.size());
    for (const auto& code : p.code) run_instruction(code, regs, n);
    for (const auto& store : p.stores) put(store.place, regs[store.reg], begin, n, out[store.output]);
    begin += n;
    is_first = within != 0;  // addresses advance by whole blocks
    within = 0;
  }
}

// The elements of an operand that a program reads.
std::int64_t elements_of(const Input& input, std::int64_t size) {
  if (input.dims.empty()) return input.spread == Input::kScalar ? 1 : size;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < input.dims.size(); ++d)
    if (input.stride[d] != 0) count *= input.dims[d];
  return count;
}

}  // namespace

Work work_of(const FusedProgram& p) {
  Work work;
  const auto bytes = [&](const Input& place) {
    return static_cast<double>(elements_of(place, p.size) * place.element);
  };
  for (const Input& input : p.inputs) {
    work.bytes += bytes(input) * input.terms;
    work.flops += static_cast<double>(p.size) * (input.terms - 1);
  }
  for (const auto& result : p.results)
    if (result.output >= 0) work.bytes += bytes(result.place);
  for (const auto& reduced : p.reduced) {
    work.flops += static_cast<double>(p.size);
    if (reduced.stored) continue;
    for (const auto& result : p.results)
      if (result.output >= 0 && result.output == reduced.output) work.bytes -= bytes(result.place);  // not in memory
    for (const auto& store : p.stores)
      if (store.output == reduced.output) work.bytes -= bytes(store.place);
  }
  for (const auto& store : p.stores) work.bytes += bytes(store.place);
  for (const auto& code : p.code)
    work.flops += static_cast<double>(p.size) * static_cast<double>(std::max<std::size_t>(code.links.size(), 1));
  return work;
}

bool by_element(const FusedProgram& p) {
  const auto fits = [](const Input& place) { return place.spread == Input::kFull || place.spread == Input::kScalar; };
  return std::all_of(p.inputs.begin(), p.inputs.end(), fits) &&
         std::all_of(p.results.begin(), p.results.end(), [&](const auto& result) { return fits(result.place); }) &&
         std::all_of(p.stores.begin(), p.stores.end(), [&](const auto& store) { return fits(store.place); });
}

void run_fused(const FusedProgram& p, const void* const* in, void* const* out, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  const std::int64_t blocks = (end - begin + p.block - 1) / p.block;
  const double cost = p.cost * static_cast<double>(std::min(p.block, end - begin));
  parallel_for(blocks, cost, [&](std::int64_t first, std::int64_t last) {
    run_blocks(p, in, out, begin + first * p.block, std::min(begin + last * p.block, end));
  });
}

void run_fused(const FusedProgram& p, const void* const* in, void* const* out) { run_fused(p, in, out, 0, p.size); }

}  // namespace syncline::kernels
