// Compiles a group of elementwise ops to a program: order, block size, and location of each value.
#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>
#include <utility>

#include "ops/kernels/fused/chain.h"
#include "ops/kernels/fused/find_chains.h"
#include "ops/kernels/fused/fused.h"

namespace syncline::kernels {
namespace {

using Input = FusedProgram::Input;

// Describes an operand by its right-aligned strides in the iteration space; adjacent dimensions are collapsed.
Input describe(const Meta& meta, const StridedView& view, const Shape& space) {
  Input input;
  input.element = static_cast<std::uint8_t>(size_of(meta.dtype));
  input.offset = view.offset;
  if (meta.shape == space && view.strides.empty()) return input;
  const int lead = space.ndim() - meta.shape.ndim();
  std::int64_t step = 1;
  for (int axis = space.ndim() - 1; axis >= 0; --axis) {
    const std::int64_t dim = axis >= lead ? meta.shape[axis - lead] : 1;
    if (space[axis] == 1) continue;
    const std::int64_t stride = dim == 1               ? 0
                                : view.strides.empty() ? step
                                                       : view.strides[static_cast<std::size_t>(axis - lead)];
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

// Fits the block to whole periods or to a fraction of a period, so that periodic operands need no copy per block.
void fit_block_to_periods(FusedProgram& p) {
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

// Returns the longest block that divides a run, or 0 if it is too short: calls dominate the cost of short blocks.
std::int64_t block_within(std::int64_t run, std::size_t widest) {
  constexpr std::int64_t kShortest = 512;  // bytes
  const auto bytes = static_cast<std::int64_t>(widest);
  const std::int64_t most = kFusedBlockBytes / bytes;
  for (std::int64_t parts = std::max<std::int64_t>(1, (run + most - 1) / most); kShortest * parts <= run * bytes;
       ++parts)
    if (run % parts == 0) return run / parts;
  return 0;
}

// True if the operand repeats each of its elements along whole rows.
bool is_one_a_row(const Input& input) {
  return input.spread == Input::kStrided && input.dims.size() == 2 && input.stride.back() == 0;
}

// True if every block is contiguous at `place`.
bool is_contiguous(const Input& place, std::int64_t block) {
  if (place.spread == Input::kFull) return true;
  return place.spread == Input::kStrided && place.stride.back() == 1 && place.dims.back() % block == 0;
}

using Buffers = std::bitset<kFusedBuffers>;

int take_buffer(Buffers& used) {
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) {
      used[i] = true;
      return static_cast<int>(i);
    }
  fail<InternalError>("fused program needs more than ", used.size(), " buffers");
}

void find_step(Input& place, std::int64_t block) {
  const bool row_by_row = place.dims.size() == 2 && place.dims.back() == block;
  if (place.spread == Input::kFull) place.step = block;
  else if (place.spread == Input::kScalar || (place.spread == Input::kPeriodic && place.period == block))
    place.step = 0;
  else if (place.spread == Input::kStrided && row_by_row) place.step = place.stride[0];
}

// Assigns buffers to inputs that need expansion. `in_place`: inputs that are one number in each block and that only
// chains read, which take a number.
void place_inputs(FusedProgram& p, const std::vector<bool>& in_place, Buffers& used) {
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    Input& input = p.inputs[i];
    bool lay = input.spread == Input::kScalar && !in_place[i];
    if (input.spread == Input::kPeriodic && input.period % p.block != 0) {
      lay = true;
      if (p.block % input.period != 0) input.spread = Input::kStrided;
    }
    if (input.spread == Input::kStrided) lay = !in_place[i] && !is_contiguous(input, p.block);
    if (lay) input.buffer = take_buffer(used);
    find_step(input, p.block);
  }
}

// Converts a group of ops to instructions over block buffers.
class Fuser {
 public:
  explicit Fuser(FusedSpec spec)
      : spec_(std::move(spec)),
        inputs_(static_cast<int>(spec_.inputs.size())),
        nodes_(static_cast<int>(spec_.nodes.size())) {
    SYNCLINE_CHECK(inputs_ + nodes_ <= kFusedRegisters);
    last_use_.fill(-1);
    p_.inputs.reserve(spec_.inputs.size());
    is_number_.reserve(spec_.inputs.size());
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i)
      p_.inputs.push_back(
          describe(spec_.inputs[i], spec_.strided_views.empty() ? StridedView{} : spec_.strided_views[i], spec_.space));
    p_.size = spec_.space.size();
    choose_block();
    for (const Input& input : p_.inputs)
      is_number_.push_back(input.spread == Input::kScalar ||
                           (is_one_a_row(input) && input.dims.back() % p_.block == 0));
    chains_ = order_by_chains(spec_, is_number_);
    for (int i = 0; i < nodes_; ++i)
      for (const int operand : spec_.nodes[i].operands) last_use_[reg_of(operand)] = i;
  }

  FusedProgram run() {
    place_inputs(p_, taken_as_numbers(), used_);
    p_.code.reserve(chains_.size());
    p_.results.reserve(spec_.nodes.size());
    int next = 0;
    for (const int count : chains_) {
      if (runs_as_chain(next, count)) add_chain(next, count);
      else add(next);
      next += count;
    }
    p_.cost = 0.15 * static_cast<double>(nodes_ + inputs_);
    return std::move(p_);
  }

 private:
  int reg_of(int operand) const { return operand >= 0 ? inputs_ + operand : ~operand; }

  std::size_t widest() const {
    std::size_t bytes = 1;
    for (const Meta& meta : spec_.inputs) bytes = std::max(bytes, size_of(meta.dtype));
    for (const FusedNode& node : spec_.nodes) bytes = std::max(bytes, size_of(node.out.dtype));
    return bytes;
  }

  // Blocks that divide the runs of strided views and of parts need no copies, and those that divide rows take an
  // operand of one element a row as a number.
  void choose_block() {
    const std::size_t bytes = widest();
    std::int64_t run = 0;  // the common divisor of the runs that the block divides
    auto meet = [&](const Input& place) {
      const std::int64_t common = std::gcd(run, place.dims.back());
      if (block_within(common, bytes) > 0) run = common;
    };
    auto meet_view = [&](const Input& place) {
      if (place.spread == Input::kStrided && place.stride.back() == 1) meet(place);
    };
    for (const Input& input : p_.inputs) meet_view(input);
    for (const FusedSpec::Part& part : spec_.parts) meet_view(place_of(part));
    for (std::size_t i = 0; i < p_.inputs.size(); ++i)
      if (is_one_a_row(p_.inputs[i]) && only_chains_read(static_cast<int>(i))) meet(p_.inputs[i]);
    p_.block = run > 0 ? block_within(run, bytes) : static_cast<std::int64_t>(kFusedBlockBytes / bytes);
    if (run == 0) fit_block_to_periods(p_);
  }

  // True if every node that reads the input takes it as a number of a chain if its blocks are one number each.
  bool only_chains_read(int input) const {
    std::vector<bool> numbers;
    for (const Input& each : p_.inputs) numbers.push_back(each.spread == Input::kScalar || is_one_a_row(each));
    return std::all_of(spec_.nodes.begin(), spec_.nodes.end(), [&](const FusedNode& node) {
      return std::find(node.operands.begin(), node.operands.end(), ~input) == node.operands.end() ||
             can_be_link(node, numbers);
    });
  }

  Input place_of(const FusedSpec::Part& part) const {
    return describe(spec_.nodes[part.node].out, part.view, spec_.space);
  }

  // True for several nodes, or for one that reads an operand with one element a row.
  bool runs_as_chain(int first, int count) const {
    const FusedNode& node = spec_.nodes[first];
    return count > 1 ||
           (can_be_link(node, is_number_) && std::any_of(node.operands.begin(), node.operands.end(), [&](int k) {
              return is_number(k) && is_one_a_row(p_.inputs[~k]);
            }));
  }

  // For each input: true if it is a number and only chains read it.
  std::vector<bool> taken_as_numbers() const {
    std::vector<bool> only = is_number_;
    int next = 0;
    for (const int count : chains_) {
      if (!runs_as_chain(next, count))
        for (const int operand : spec_.nodes[next].operands)
          if (operand < 0) only[static_cast<std::size_t>(~operand)] = false;
      next += count;
    }
    return only;
  }

  void add(int i) {
    const FusedNode& node = spec_.nodes[i];
    FusedProgram::Instruction code;
    std::vector<Meta> operands;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      code.in[k] = static_cast<std::int16_t>(reg_of(node.operands[k]));
      operands.push_back(spec_.meta_of(node.operands[k]));
    }
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
    code.dtype = spec_.nodes[first + count - 1].out.dtype;  // a comparison's own is bool
    for (int i = first; i < first + count; ++i) {
      code.links.push_back(link(i, i == first ? start : i - 1));
      add_result(i, /*wanted=*/i + 1 == first + count);
    }
    p_.code.push_back(std::move(code));
  }

  bool is_number(int operand) const { return operand < 0 && is_number_[static_cast<std::size_t>(~operand)]; }

  // Returns node i as a link of a chain; its operand `value` is the current value of the chain.
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
    if (takes_mask(node.op->name)) {
      constexpr Beside kBesides[2][2] = {{Beside::kBlocks, Beside::kBlockNumber},
                                         {Beside::kNumberBlock, Beside::kNumbers}};
      beside = kBesides[is_number(node.operands[1])][is_number(node.operands[2])];
      made.in = static_cast<std::int16_t>(reg_of(node.operands[1]));
      made.other = static_cast<std::int16_t>(reg_of(node.operands[2]));
    }
    made.code = chain_code(node.op->name, beside);
    return made;
  }

  // Assigns a location to the value of node i. `wanted`: a later instruction reads it; otherwise only outputs of the
  // group need it.
  void add_result(int i, bool wanted) {
    const std::size_t stores = p_.stores.size();
    FusedProgram::Result result = result_of(i);
    // Operands with their last use here free their buffers. An operand of equal element width frees its buffer before
    // the result takes one, since blocks may run in place. Other operands free it afterwards, since a wider result
    // would overwrite elements before they are read.
    free_dead_operands(i, result.element, /*same_width=*/true);
    if (result.output < 0 && (wanted || p_.stores.size() > stores)) result.buffer = take_buffer(used_);
    free_dead_operands(i, result.element, /*same_width=*/false);
    result.place.element = result.element;
    find_step(result.place, p_.block);
    p_.results.push_back(std::move(result));
  }

  // Writes directly to an output if no operand in that memory is read later; otherwise stores at the end of the block.
  FusedProgram::Result result_of(int i) {
    FusedProgram::Result result{.element = static_cast<std::uint8_t>(size_of(spec_.nodes[i].out.dtype))};
    for (int j = 0; j < static_cast<int>(spec_.outputs.size()); ++j) {
      if (spec_.outputs[j] != i) continue;
      const int overwritten = spec_.overwrites.empty() ? -1 : spec_.overwrites[j];
      if (result.output < 0 && (overwritten < 0 || last_use_[overwritten] <= i)) result.output = j;
      else p_.stores.push_back({inputs_ + i, j, describe(spec_.nodes[i].out, {}, spec_.space)});
    }
    for (const FusedSpec::Part& part : spec_.parts) {
      if (part.node != i) continue;
      Input place = place_of(part);
      if (result.output < 0 && is_contiguous(place, p_.block)) {
        result.output = part.output;
        result.place = std::move(place);
      } else {
        p_.stores.push_back({inputs_ + i, part.output, std::move(place)});
      }
    }
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

  FusedSpec spec_;           // nodes in chain order
  std::vector<int> chains_;  // their lengths
  const int inputs_, nodes_;
  std::array<int, kFusedRegisters> last_use_;  // by register: the last reading node
  std::vector<bool> is_number_;                // by input: one element in each block
  Buffers used_;                               // in use
  FusedProgram p_;
};

}  // namespace

FusedProgram fuse(FusedSpec spec) { return Fuser(std::move(spec)).run(); }

void compute_by_blocks(FusedProgram& program, std::size_t operand, int terms) {
  Buffers used;
  const auto take = [&](int buffer) {
    if (buffer >= 0) used[static_cast<std::size_t>(buffer)] = true;
  };
  for (const Input& input : program.inputs) take(input.buffer);
  for (const FusedProgram::Result& result : program.results) take(result.buffer);
  Input& input = program.inputs[operand];
  SYNCLINE_CHECK(input.spread == Input::kFull && input.offset == 0);
  input.buffer = take_buffer(used);
  input.spread = Input::kComputed;
  input.terms = terms;
}

bool is_read_in_place(const Meta& operand, const Shape& space) {
  const Input input = describe(operand, {}, space);
  return input.spread != Input::kStrided || (is_one_a_row(input) && block_within(input.dims.back(), input.element) > 0);
}

}  // namespace syncline::kernels
