#include "runtime/schedule/leases.h"

#include <algorithm>

#include "runtime/collectives.h"

namespace syncline {
namespace {

bool is_read_by(const Step& step, const Expr& value) {
  return std::any_of(step.reads.begin(), step.reads.end(), [&](const StepValue& read) { return read.value == value; });
}

// Element by element, so that it can be done for the elements of one rank at a time.
bool reads_elements(const Step& step, const Expr& value, const std::vector<kernels::FusedProgram>& fused) {
  if (step.kind != Step::kFused) return false;
  const kernels::FusedProgram& program = fused[static_cast<std::size_t>(step.index)];
  if (!kernels::by_element(program) || program.size != value.shape().size()) return false;
  for (std::size_t i = 0; i < step.reads.size(); ++i) {
    const kernels::FusedProgram::Input& input = program.inputs[i];
    const bool whole = input.spread == kernels::FusedProgram::Input::kFull && input.offset == 0;
    if (step.reads[i].value == value && !whole) return false;
  }
  return true;
}

// Where each rank's elements begin; empty if they are not whole rows.
std::vector<std::int64_t> parts_of(const Expr& value, const LocalView& local) {
  if (local.placement(value.input(0)).axis != 0 || value.shape().size() == 0) return {};
  const std::int64_t rows = value.shape()[0], row = value.shape().size() / rows;
  std::vector<std::int64_t> begin;
  for (int r = 0; r < static_cast<int>(local.shares().begin.size()); ++r)
    begin.push_back(local.shares().at(r, rows) * row);
  return begin;
}

// This rank's rows are computed at their place among all. Outputs of the plan are never there
// (runtime/schedule/buffers.cc).
bool lies_in_shared_memory(const Expr& value, Buffers& buffers) {
  const int all = buffers.locate(value).buffer;
  return buffers[all].kind == Buffer::kShared && buffers.locate(value.input(0)).buffer == all;
}

// A step goes through the elements in one way.
bool clash(const InPlaceGather& a, const InPlaceGather& b) {
  return a.begin != b.begin &&
         std::find_first_of(a.readers.begin(), a.readers.end(), b.readers.begin(), b.readers.end()) != a.readers.end();
}

}  // namespace

std::vector<InPlaceGather> find_in_place_gathers(const std::vector<Step>& steps,
                                                 const std::vector<kernels::FusedProgram>& fused,
                                                 const LocalView& local, Buffers& buffers) {
  std::vector<InPlaceGather> found;
  for (std::size_t start = 0; start < steps.size(); ++start) {
    if (steps[start].kind != Step::kStart || steps[start].writes.empty()) continue;
    const Expr& value = steps[start].writes[0].value;
    if (!value.is<AllGather>()) continue;
    InPlaceGather gather{value, start, parts_of(value, local), {}};
    if (gather.begin.empty() || !lies_in_shared_memory(value, buffers)) continue;
    for (std::size_t s = 0; s < steps.size(); ++s)
      if (is_read_by(steps[s], value)) gather.readers.push_back(s);
    const bool by_element = std::all_of(gather.readers.begin(), gather.readers.end(),
                                        [&](std::size_t s) { return reads_elements(steps[s], value, fused); });
    if (by_element && std::none_of(found.begin(), found.end(), [&](const auto& g) { return clash(g, gather); }))
      found.push_back(std::move(gather));
  }
  return found;
}

void read_by_rank(const InPlaceGather& gather, std::size_t offset, std::vector<Step>& steps,
                  std::vector<RankParts>& parts) {
  for (const std::size_t s : gather.readers) {
    Step& step = steps[s];
    if (step.by_rank < 0) {
      step.by_rank = static_cast<int>(parts.size());
      parts.push_back({gather.begin, {}, {}, std::vector<const void*>(step.reads.size())});
    }
    RankParts& of_step = parts[static_cast<std::size_t>(step.by_rank)];
    for (std::size_t i = 0; i < step.reads.size(); ++i) {
      if (!(step.reads[i].value == gather.value)) continue;
      of_step.operands.push_back(i);
      of_step.offsets.push_back(offset);
    }
  }
}

}  // namespace syncline
