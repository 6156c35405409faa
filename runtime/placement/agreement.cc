#include "runtime/placement/agreement.h"

#include <algorithm>
#include <cfenv>
#include <cfloat>
#include <new>
#include <sstream>
#include <unordered_map>

#include "base/digest.h"
#include "base/version.h"
#include "ops/graph/attrs.h"
#include "ops/graph/op.h"
#include "ops/kernels/digest.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/product/blas.h"
#include "runtime/placement/differing_value.h"
#include "runtime/placement/faults.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/random.h"
#include "syncline/distributed/communicator.h"
#include "syncline/session.h"

namespace syncline {
namespace {

// Increase it when a change of kernels or plans changes the bits of a training. A resumed run reports the difference.
constexpr int kArithmetic = 10;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

const char* rounding_mode() {
  switch (std::fegetround()) {
    case FE_TONEAREST: return "rounding to nearest";
    case FE_UPWARD: return "rounding upward";
    case FE_DOWNWARD: return "rounding downward";
    default: return "rounding toward zero";
  }
}

// Loading a library built with -ffast-math sets these modes for the loading thread.
const char* denormal_mode() {
  volatile float smallest_normal = FLT_MIN, denormal = FLT_TRUE_MIN;
  const bool flushes = smallest_normal * 0.5f == 0.f;
  const bool ignores = denormal * static_cast<float>(1 << 24) == 0.f;
  if (flushes && ignores) return "denormal numbers taken as zero and flushed to zero";
  if (flushes) return "denormal numbers flushed to zero";
  return ignores ? "denormal numbers taken as zero" : "denormal numbers kept";
}

class TooLittleMemory : public std::bad_alloc {
 public:
  TooLittleMemory(std::ptrdiff_t rank, std::string_view purpose)
      : text_(join_text("rank ", rank, " has not enough memory for ", purpose)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// What ranks must agree on besides the graph. One line each, phrased to follow "rank 0 has".
std::string describe_process(const Session& session, const Strategy& ranks) {
  return join_text(describe_arithmetic(session, &ranks), "seed ", session.seed(), '\n', session.random_step(),
                   " finished steps that drew random numbers\n");
}

constexpr std::string_view kBeforeLine = "rank 0 has ";

// The first words that differ, as " (seed=1 against seed=7)"; "" if the lines have different numbers of words.
std::string differing_words(const std::string& a, const std::string& b) {
  const auto words_of = [](const std::string& line) {
    std::vector<std::string> words(1);
    for (const char c : line)
      if (c == ' ' || c == ',' || c == '(' || c == ')') words.emplace_back();
      else words.back() += c;
    return words;
  };
  const std::vector<std::string> x = words_of(a), y = words_of(b);
  if (x.size() != y.size()) return "";
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i]) return join_text(" (", x[i], " against ", y[i], ')');
  return "";
}

struct Difference {
  std::size_t other = 0;  // the first rank that differs from rank 0; 0 if none
  std::size_t line = 0;   // the first line that differs, from 1
  std::string text;       // "rank 0 has seed 1, rank 2 has seed 7"
};

Difference find_difference(Strategy& ranks, const std::string& own) {
  const std::vector<std::string> texts = gather_texts(ranks, own);
  std::size_t other = 1;
  while (other < texts.size() && texts[other] == texts[0]) ++other;
  if (other == texts.size()) return {};
  const auto a = lines_of(texts[0]), b = lines_of(texts[other]);
  std::size_t line = 0;
  while (line < a.size() && line < b.size() && a[line] == b[line]) ++line;
  const std::string nothing = "nothing";
  const std::string& left = line < a.size() ? a[line] : nothing;
  const std::string& right = line < b.size() ? b[line] : nothing;
  return {other, line + 1,
          join_text(kBeforeLine, left, ", rank ", other, " has ", right, differing_words(left, right))};
}

void require_equal_processes(Strategy& ranks, const std::string& process) {
  const Difference found = find_difference(ranks, process);
  if (found.other > 0)
    fail<DisagreementError>("ranks 0 and ", found.other, " are not alike: ", found.text, "; ",
                            advice_on_difference(std::string_view(found.text).substr(kBeforeLine.size())));
}

std::uint64_t digest_text(const std::string& text) { return digest_bytes(text.data(), text.size()); }

}  // namespace

const char* advice_on_difference(std::string_view line) {
  if (line.starts_with("instruction set"))
    return "start all ranks on processors of one kind, or set SYNCLINE_SIMD=common";
  if (line.starts_with("OpenBLAS's kernels"))
    return "start all ranks on processors of one kind, or set OPENBLAS_CORETYPE on all ranks to a kind whose "
           "instructions all processors have (Haswell: AVX2)";
  return "start all ranks with the same program, libraries and options";
}

std::string describe_arithmetic(const Session& session, const Strategy* ranks) {
  const bool odd = session.faults() != nullptr && session.faults()->another_version();
  const Config& config = session.config();
  return join_text("Syncline ", version(), odd ? " in another version, as SYNCLINE_FAULT asks" : "", ", arithmetic ",
                   kArithmetic, "\ninstruction set ", kernels::instruction_sets().front().name, '\n',
                   kernels::loaded_blas().processor, '\n', rounding_mode(), '\n', denormal_mode(), "\nfloatx ",
                   config.floatx, "\nepsilon ", config.epsilon, "\nimage_data_format ", config.image_data_format, '\n',
                   ranks == nullptr ? "" : ranks->describe() + '\n');
}

std::string describe_setting(const Session& session, const comm::Communicator* communicator) {
  return join_text(communicator == nullptr ? "ranks 0" : communicator->layout(), '\n',
                   describe_arithmetic(session, session.strategy()));
}

std::string change_of_setting(const std::string& saved, const std::string& now) {
  const auto parts_of = [](const std::string& setting) {
    for (const std::string& line : lines_of(setting))
      if (line.ends_with(" parts of a batch")) return line;
    return std::string("no parts of a batch");
  };
  std::string was, is;
  const bool by_parts = parts_of(saved) == parts_of(now) && parts_of(now) != parts_of("");
  if (parts_of(saved) != parts_of(now)) was = parts_of(saved), is = parts_of(now);
  // The data format decides the graph, which a plan's fingerprint covers; sharing, splitting and comparing variables
  // change no bits. With parts of a batch neither the ranks nor buckets nor gradients by rows do.
  const auto deciding = [&](const std::string& setting) {
    std::vector<std::string> lines = lines_of(setting);
    std::erase_if(lines, [&](const std::string& line) {
      const auto begins = [&](const char* text) { return line.starts_with(text); };
      return begins("image_data_format ") || begins("comparing variables ") || begins("sharing variables ") ||
             begins("optimizer state ") || line.ends_with(" parts of a batch") ||
             (by_parts && (begins("ranks ") || begins("buckets ") || begins("gradients by rows ")));
    });
    return lines;
  };
  const std::vector<std::string> before = deciding(saved), after = deciding(now);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (before[i] == after[i]) continue;
    was += (was.empty() ? "" : ", ") + before[i];
    is += (is.empty() ? "" : ", ") + after[i];
  }
  if (was.empty()) return {};
  return join_text("the training was saved with ", was, " and continues with ", is,
                   ": the result may not be bitwise identical");
}

std::string describe_graph(const std::string& name, std::span<const Expr> roots, std::span<const Update> updates) {
  std::string text = name + '\n';
  std::unordered_map<const Node*, std::size_t> number;
  for (const auto& node : nodes_under(roots)) {
    const std::size_t n = number.size();
    number[node.get()] = n;
    text += join_text('%', n, " = ", node->op->name, '(', node->op->print(node->attrs.get()), ')');
    for (const Expr& input : node->inputs) text += join_text(" %", number.at(&input.node()), '.', input.output());
    for (const Meta& meta : node->outputs) text += join_text(" : ", meta);
    if (!node->name.empty()) text += " '" + node->name + '\'';
    text += '\n';
  }
  const std::size_t outputs = roots.size() - updates.size();
  for (std::size_t i = 0; i < roots.size(); ++i) {
    text += join_text(i < outputs ? "output" : "update", " %", number.at(&roots[i].node()));
    if (i >= outputs) text += " of '" + updates[i - outputs].target.name() + '\'';
    text += '\n';
  }
  return text;
}

std::uint64_t agree_on_graph(const Session& session, Strategy& ranks, const std::string& graph) {
  const std::string process = describe_process(session, ranks);
  const std::uint64_t fingerprint = digest_text(graph);
  if (all_equal(gather_numbers(ranks, attrs::mix(digest_text(process), fingerprint)))) return fingerprint;
  require_equal_processes(ranks, process);
  const Difference found = find_difference(ranks, graph);
  SYNCLINE_CHECK(found.other > 0);
  fail<DisagreementError>("ranks 0 and ", found.other, " built different functions; the first difference (line ",
                          found.line, "): ", found.text, "; every rank must run the same program");
}

void require_memory(Strategy* ranks, std::string_view purpose, bool enough) {
  std::vector<std::uint64_t> all{enough};
  if (ranks != nullptr) all = gather_numbers(*ranks, all.front(), purpose);
  const auto found = std::find(all.begin(), all.end(), 0);
  if (found != all.end()) throw TooLittleMemory(found - all.begin(), purpose);
}

void agree_on_instruction_sets(Strategy& ranks, bool common) {
  std::uint64_t own = 0, shared = ~std::uint64_t{0};
  for (const kernels::InstructionSet& set : kernels::instruction_sets()) own |= static_cast<std::uint64_t>(set.id);
  const std::vector<std::uint64_t> all = gather_numbers(ranks, std::vector<std::uint64_t>{common, own});
  for (std::size_t i = 0; i < all.size(); i += 2) {
    common = common || all[i] != 0;
    shared &= all[i + 1];
  }
  if (!common || shared == own) return;
  if (shared == 0)
    fail<DisagreementError>(
        "the processors of the ranks have no instruction set in common; SYNCLINE_SIMD=common needs ",
        "processors of one architecture");
  kernels::limit_instruction_sets(static_cast<std::int64_t>(shared));
}

void agree_on_seeds(Strategy& ranks, std::span<RandomOp* const> random_ops) {
  std::vector<RandomOp*> drawn;
  std::copy_if(random_ops.begin(), random_ops.end(), std::back_inserter(drawn),
               [](const RandomOp* op) { return op->seed_of_rank; });
  if (drawn.empty()) return;
  std::vector<std::uint64_t> seeds;
  for (const RandomOp* op : drawn) seeds.push_back(op->seed);
  ranks.broadcast("the seeds of random operations", seeds.data(), seeds.size() * sizeof seeds[0]);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    drawn[i]->seed = seeds[i];
    drawn[i]->seed_of_rank = false;
  }
}

void agree_on_values(Strategy& ranks, const std::string& function, std::span<const std::string> names,
                     std::span<const std::uint64_t> digests) {
  const std::vector<std::uint64_t> all = gather_numbers(ranks, digests, "feeds that all ranks have in common");
  const std::vector<std::size_t> unequal = unequal_places(all, digests.size());
  if (unequal.empty()) return;
  const std::size_t input = unequal[0];
  std::size_t rank = 1;
  while (all[rank * digests.size() + input] == all[input]) ++rank;
  fail<DisagreementError>(function, ": input '", names[input], "' differs on ranks 0 and ", rank,
                          "; under local_feeds a value whose rows are not those of the batch must be the same on ",
                          "every rank");
}

void UsedVariables::add(std::span<const std::shared_ptr<VariableState>> variables) {
  for (const auto& state : variables)
    if (!state->partial() && known_.insert(state.get()).second) variables_.push_back(state);
}

void UsedVariables::clear() {
  ++round_;
  variables_.clear();
  known_.clear();
}

void UsedVariables::compare(const Session& session, Strategy& ranks) {
  const std::string process = describe_process(session, ranks);
  std::string names;  // with dtypes, shapes and agreed(): these must agree before values are compared
  std::vector<std::uint64_t> digests;
  std::erase_if(variables_, [](const auto& state) { return state->is_split(); });
  for (const auto& state : variables_) {
    names += join_text("variable '", state->name(), "' ", Meta{state->value().dtype(), state->value().shape()},
                       state->agreed() ? "" : " that was set by hand", '\n');
    digests.push_back(state->agreed() ? kernels::digest(state->value().raw(), state->value().bytes()) : 0);
  }
  std::uint64_t all = attrs::mix(digest_text(process), digest_text(names));
  for (const std::uint64_t digest : digests) all = attrs::mix(all, digest);
  if (!all_equal(gather_numbers(ranks, all))) {
    require_equal_processes(ranks, process);
    const Difference found = find_difference(ranks, names);
    if (found.other > 0)
      fail<DisagreementError>("ranks 0 and ", found.other, " have used different variables up to step ",
                              session.steps(), ": ", found.text, "; every rank must run the same program");
    explain_values(ranks, variables_, digests, session.steps());
  }
  clear();
}

}  // namespace syncline
