// syncline verify FILE...: whether checkpoints still hold what was written into them.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/printable.h"
#include "syncline/checkpoint/checkpoint.h"
#include "tools/command.h"
#include "tools/confined.h"

namespace syncline::tools {
namespace {

constexpr int kFine = 0, kDamaged = 1, kUnreadable = 2;

std::string verdict(const io::VerifyReport& report) {
  if (!report.problems.empty()) return fmt::format("damaged; problems found: {}", report.problems.size());
  if (report.has_digests)
    return fmt::format("fine, {}{} arrays, {} bytes", report.is_shard ? "one shard: " : "", report.arrays,
                       report.bytes);
  return fmt::format("readable, {} arrays, {} bytes; it has no digests; its checksums, if any, are correct",
                     report.arrays, report.bytes);
}

struct Options {
  std::vector<std::string> files;
  Limits limits;
};

// Returns the exit status as a digit, followed by the text to print.
std::string answer_of(const std::string& file) {
  const io::VerifyReport report = io::verify_checkpoint(file);
  if (!report.readable) return fmt::format("{}{}\n", kUnreadable, printable(report.problems.at(0)));
  std::string answer = fmt::format("{}", report.problems.empty() ? kFine : kDamaged);
  for (const std::string& problem : report.problems) answer += printable(problem) + "\n";
  return answer + fmt::format("{}: {}\n", file, verdict(report));
}

int verify(const std::string& file, const Limits& limits) {
  std::string answer;
  try {
    answer = run_confined({file}, limits, [&] { return answer_of(file); });
  } catch (const Error& error) {
    answer = fmt::format("{}{}\n", kUnreadable, error.what());
  }
  const int status = answer.at(0) - '0';
  const std::string text = printable(answer.substr(1), true);
  if (status == kUnreadable) fmt::print(stderr, "syncline: {}", text);
  else fmt::print("{}", text);
  return status;
}

int verify_all(const Options& options) {
  int status = kFine;
  for (const std::string& file : options.files) status = std::max(status, verify(file, options.limits));
  return status;
}

}  // namespace

void add_verify(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "verify",
      "Check whether checkpoints are undamaged. Exit status: 0 all are, 1 one is damaged, 2 one cannot be read");
  const auto options = std::make_shared<Options>();
  command->add_option("FILE", options->files, "The checkpoints")->required();
  add_limits(*command, options->limits);
  command->callback([options] { end_with(verify_all(*options)); });
}

}  // namespace syncline::tools
