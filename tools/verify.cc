// syncline verify FILE...: whether checkpoints hold what was written into them.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "tools/command.h"
#include "tools/printable.h"

namespace syncline::tools {
namespace {

constexpr int kFine = 0, kDamaged = 1, kUnreadable = 2;

std::string verdict(const io::VerifyReport& report) {
  if (!report.problems.empty()) return fmt::format("damaged, {} found", report.problems.size());
  if (report.has_digests) return fmt::format("fine, {} arrays, {} bytes", report.arrays, report.bytes);
  return fmt::format("readable, {} arrays, {} bytes; it has no digests, and checksums, if any, fit", report.arrays,
                     report.bytes);
}

int verify(const std::string& file) {
  const io::VerifyReport report = io::verify_checkpoint(file);
  if (!report.readable) {
    fmt::print(stderr, "syncline: {}\n", printable(report.problems.at(0)));
    return kUnreadable;
  }
  for (const std::string& problem : report.problems) fmt::print("{}\n", printable(problem));
  fmt::print("{}: {}\n", file, verdict(report));
  return report.problems.empty() ? kFine : kDamaged;
}

int verify_all(const std::vector<std::string>& files) {
  int status = kFine;
  for (const std::string& file : files) status = std::max(status, verify(file));
  return status;
}

}  // namespace

void add_verify(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "verify", "Tell whether checkpoints are whole. Exit status: 0 all are, 1 one is damaged, 2 one cannot be read");
  const auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("FILE", *files, "The checkpoints")->required();
  command->callback([files] { end_with(verify_all(*files)); });
}

}  // namespace syncline::tools
