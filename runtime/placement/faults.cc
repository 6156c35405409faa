#include "runtime/placement/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "runtime/placement/strategy.h"
#include "syncline/backend/variable.h"
#include "syncline/error.h"
#include "syncline/session.h"

namespace syncline {
namespace {

struct Form {
  std::string_view name;
  Fault::Kind kind;
  std::size_t numbers;
  bool variable;
  std::string_view usage;
};

constexpr std::array kForms{
    Form{"kill", Fault::kKill, 0, false, "kill"},
    Form{"exit0", Fault::kExit, 0, false, "exit0"},
    Form{"stop", Fault::kStop, 0, false, "stop"},
    Form{"sleep", Fault::kSleep, 1, false, "sleep:MILLISECONDS"},
    Form{"throw", Fault::kThrow, 0, false, "throw"},
    Form{"skip", Fault::kSkip, 0, false, "skip"},
    Form{"seed", Fault::kSeed, 0, false, "seed"},
    Form{"version", Fault::kVersion, 0, false, "version"},
    Form{"rounding", Fault::kRounding, 0, false, "rounding"},
    Form{"flip", Fault::kFlip, 2, true, "flip:VARIABLE:ELEMENT:BIT"},
    Form{"swap", Fault::kSwap, 2, false, "swap:TRANSFER:TRANSFER"},
    Form{"count", Fault::kCount, 0, false, "count"},
    Form{"reduce", Fault::kReduce, 0, false, "reduce"},
    Form{"dtype", Fault::kDType, 0, false, "dtype"},
    Form{"collective", Fault::kCollective, 0, false, "collective"},
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(at); end != text.npos; end = text.find(at)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::uint64_t number_in(std::string_view fault, std::string_view text, std::string_view what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail<ValueError>("SYNCLINE_FAULT: ", what, " '", text, "' in '", fault, "' is not a number; give RANK:STEP:WHAT");
  return number;
}

Fault parse_fault(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 3) fail<ValueError>("SYNCLINE_FAULT: '", text, "' is too short; give RANK:STEP:WHAT");
  const auto form = std::find_if(kForms.begin(), kForms.end(), [&](const Form& f) { return f.name == parts[2]; });
  if (form == kForms.end()) {
    std::string known;
    for (const Form& f : kForms) known += join_text(known.empty() ? "" : ", ", f.usage);
    fail<ValueError>("SYNCLINE_FAULT: unknown fault '", parts[2], "' in '", text, "'; the known faults are ", known);
  }
  Fault fault{.kind = form->kind, .text = std::string(text)};
  fault.rank = static_cast<int>(number_in(text, parts[0], "the rank"));
  fault.step = number_in(text, parts[1], "the step");
  // A variable's name may contain colons.
  const std::size_t given = parts.size() - 3, wanted = form->numbers + (form->variable ? 1 : 0);
  if (given < wanted || (given > wanted && !form->variable))
    fail<ValueError>("SYNCLINE_FAULT: '", text, "' has ", given, " arguments; give RANK:STEP:", form->usage);
  for (std::size_t i = parts.size() - form->numbers; i < parts.size(); ++i)
    fault.numbers.push_back(number_in(text, parts[i], "the argument"));
  if (form->variable) {
    const char *begin = parts[3].data(), *end = parts[parts.size() - form->numbers].data() - 1;
    fault.variable.assign(begin, end);
  }
  return fault;
}

// Keras's variable names end in ":0", which a fault may omit.
bool is_named(const VariableState& state, const std::string& name) {
  return state.name() == name || state.name() == name + ":0";
}

void flip(VariableState& state, const Fault& fault) {
  Array& value = state.value();
  const std::uint64_t element = fault.numbers[0], bit = fault.numbers[1], width = size_of(value.dtype());
  if (element >= static_cast<std::uint64_t>(value.size()) || bit >= 8 * width)
    fail<ValueError>("SYNCLINE_FAULT: '", fault.text, "': variable '", state.name(), "' has ", value.size(),
                     " elements of ", 8 * width, " bits");
  value.raw()[element * width + bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
}

// May end or stop the process, or throw.
void carry_out(const Fault& fault, Session& session) {
  switch (fault.kind) {
    case Fault::kKill: std::raise(SIGKILL); return;
    case Fault::kExit: std::exit(0);
    case Fault::kStop: std::raise(SIGSTOP); return;
    case Fault::kSleep: std::this_thread::sleep_for(std::chrono::milliseconds(fault.numbers[0])); return;
    case Fault::kThrow: fail<Error>("SYNCLINE_FAULT: '", fault.text, "' is thrown");
    case Fault::kSeed: session.set_seed(session.seed() + 1); return;
    case Fault::kRounding: std::fesetround(FE_UPWARD); return;
    default: return;
  }
}

constexpr bool is_of_process(Fault::Kind kind) {
  return kind <= Fault::kThrow || kind == Fault::kSeed || kind == Fault::kRounding;
}

}  // namespace

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  for (const std::string_view one : split(text, ',')) faults.push_back(parse_fault(one));
  return faults;
}

void Faults::choose_own(const Session& session) {
  chosen_ = true;
  const Strategy* strategy = session.strategy();
  const int rank = strategy == nullptr ? 0 : strategy->rank();
  const int size = strategy == nullptr ? 1 : strategy->size();
  for (const Fault& fault : faults_)
    if (fault.rank >= size)
      fail<ValueError>("SYNCLINE_FAULT: '", fault.text, "' is for rank ", fault.rank, ", but the job has ", size,
                       " ranks, counted from 0");
  std::erase_if(faults_, [&](const Fault& fault) { return fault.rank != rank; });
  for (const Fault& fault : faults_)
    fmt::print(stderr, "syncline: rank {} WILL INJECT A FAULT, as SYNCLINE_FAULT asks: '{}'\n", rank, fault.text);
}

Fault* Faults::due(Fault::Kind kind, std::uint64_t step) {
  const auto found = std::find_if(faults_.begin(), faults_.end(),
                                  [&](const Fault& fault) { return fault.kind == kind && fault.step <= step; });
  return found == faults_.end() ? nullptr : &*found;
}

void Faults::spend(const Fault& fault) { faults_.erase(faults_.begin() + (&fault - faults_.data())); }

void Faults::before_step(Session& session) {
  if (!chosen_) choose_own(session);
  another_version_ |= due(Fault::kVersion, session.steps()) != nullptr;
  for (std::size_t i = 0; i < faults_.size();) {
    if (!is_of_process(faults_[i].kind) || faults_[i].step > session.steps()) {
      ++i;
      continue;
    }
    const Fault fault = faults_[i];
    spend(faults_[i]);
    carry_out(fault, session);
  }
}

bool Faults::before_run(std::uint64_t step, std::span<const std::shared_ptr<VariableState>> variables) {
  if (const Fault* fault = due(Fault::kFlip, step))
    for (const auto& state : variables)
      if (is_named(*state, fault->variable)) {
        flip(*state, *fault);
        spend(*fault);
        break;
      }
  const Fault* fault = due(Fault::kSkip, step);
  if (fault == nullptr) return false;
  spend(*fault);
  return true;
}

const Fault* Faults::of_transfers(std::uint64_t step) const {
  const auto found = std::find_if(faults_.begin(), faults_.end(),
                                  [&](const Fault& fault) { return fault.kind >= Fault::kSwap && fault.step <= step; });
  return found == faults_.end() ? nullptr : &*found;
}

}  // namespace syncline
