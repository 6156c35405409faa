// graphs_fuzz [--first SEED] [--count PROGRAMS | --seconds S] [--findings N] [--coverage LEAST] [--by-parts LEAST]
// [--show SEED] [--no-shrink]: draws a program for each seed and computes it in all ways (ways.h). Shrinks the first
// program that fails, prints it as a C++ case, and exits with 1 (--findings N: after N programs). --coverage: LEAST
// graphs must contain each registered op, and LEAST graphs must differentiate each op with a gradient. --by-parts:
// LEAST graphs must run with parts of the batch. --show prints a program.
//
// A child process computes the programs, so a crash and a hang are findings too.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <set>

#include "ops/graph/op.h"
#include "syncline/error.h"
#include "tests/graphs/shrink.h"
#include "tests/graphs/ways.h"

namespace syncline::graphs {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kHang = 40;  // seconds

struct Options {
  std::uint64_t first = 1, count = ~std::uint64_t{0};
  double seconds = 1e9;
  int findings = 1, coverage = 0, by_parts = 0;
  std::uint64_t show = 0;
  bool shrink = true;
};

// Ops that occur only in plans, or in few gradients.
const std::set<std::string_view> kNotDrawn{"all_gather",
                                           "all_reduce",
                                           "copy",
                                           "interleave",
                                           "own_rows",
                                           "own_part",
                                           "true_at",
                                           "choose",
                                           "condition",
                                           "dot_packed",
                                           "pack_matrix",
                                           "linear_scan",
                                           "sparse_joined_part",
                                           "ctc_second_derivative"};
// Only a third derivative would differentiate the first. Few second derivatives need the second's.
const std::set<std::string_view> kNotDifferentiated{"max_pool_gather", "ctc_batch_cost_grad"};

// The report of a child to its parent, in shared memory.
struct Shared {
  std::uint64_t seed;
  std::uint64_t programs, rejected;
  bool done;
  char message[8000];
};

Shared* shared() {
  static Shared* memory =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return memory;
}

// A program's failure, "" if there is none.
std::string failure_of(const Program& program, Coverage* coverage) {
  try {
    const std::string found = run_ways(program, coverage);
    if (coverage != nullptr && runs_by_parts(program)) ++coverage->by_parts;
    return found;
  } catch (const Rejected&) {
    ++shared()->rejected;
  } catch (const InternalError& e) {
    return std::string("building: an internal error: ") + e.what();
  } catch (const ValueError&) {  // the program cannot be built in one of the ways
    ++shared()->rejected;
  } catch (const DTypeError&) {
    ++shared()->rejected;
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return {};
}

void say(const std::string& message) { std::strncpy(shared()->message, message.c_str(), sizeof(Shared::message) - 1); }

std::string check_coverage(const Coverage& coverage, int least) {
  std::string missing;
  for (const OpDef* op : registered_ops()) {
    if (op->leaf || kNotDrawn.contains(op->name)) continue;
    const auto found = coverage.graphs.find(op->name);
    const auto [computed, differentiated] = found == coverage.graphs.end() ? std::pair{0, 0} : found->second;
    if (computed < least) missing += join_text("  ", op->name, " stood in ", computed, " graphs\n");
    if (op->grad != nullptr && !kNotDifferentiated.contains(op->name) && differentiated < least)
      missing += join_text("  ", op->name, " was differentiated in ", differentiated, " graphs\n");
  }
  return missing.empty() ? "" : join_text("coverage: fewer than ", least, " graphs\n", missing);
}

// In a child: runs until something fails; returns the exit status.
int run_programs(const Options& options, std::uint64_t first, Clock::time_point end, Coverage& coverage) {
  for (std::uint64_t seed = first; seed - options.first < options.count && Clock::now() < end; ++seed) {
    shared()->seed = seed;
    ++shared()->programs;
    alarm(kHang);
    const std::string failure = failure_of(draw_program(seed), &coverage);
    if (failure.empty()) continue;
    say(failure);
    return 1;
  }
  shared()->done = true;
  std::string missing = options.coverage == 0 ? "" : check_coverage(coverage, options.coverage);
  if (coverage.by_parts < options.by_parts)
    missing += join_text("coverage: only ", coverage.by_parts, " graphs ran with parts of the batch\n");
  say(missing);
  return missing.empty() ? 0 : 1;
}

// Runs `body` in a child process. Returns the failure, or "".
std::string in_child(const std::function<int()>& body) {
  shared()->message[0] = 0;
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "hang: longer than the limit";
  if (WIFSIGNALED(status)) return std::string("crash: ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return {};
  return shared()->message[0] != 0 ? shared()->message : "crash: exit " + std::to_string(WEXITSTATUS(status));
}

std::string in_child(const Program& program, unsigned seconds) {
  return in_child([&] {
    alarm(seconds);
    const std::string failure = failure_of(program, nullptr);
    say(failure);
    return failure.empty() ? 0 : 1;
  });
}

// "2 ranks, call 1: ..." -> "2 ranks"
std::string kind_of(const std::string& failure) {
  std::string kind = failure.substr(0, failure.find_first_of(",:"));
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return failure.find("internal error") != std::string::npos ? kind + " internal" : kind;
}

void report(std::uint64_t seed, const std::string& failure, const Options& options, double seconds) {
  std::cout << "seed " << seed << " after " << seconds << " s, " << shared()->programs << " programs: " << failure
            << "\n";
  if (!options.shrink) return;
  const std::string kind = kind_of(failure);
  std::string last = failure;
  const Program small = shrink(draw_program(seed), [&](const Program& program) {
    const std::string now = in_child(program, 20);
    if (kind_of(now) != kind) return false;
    last = now;
    return true;
  });
  std::cout << "shrunk: " << last << "\n" << print(small) << std::endl;
}

int run(const Options& options) {
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  int findings = 0;
  std::uint64_t first = options.first;
  while (findings < options.findings) {
    const std::string failure = in_child([&] {
      Coverage coverage;
      const int status = run_programs(options, first, end, coverage);
      if (std::getenv("GRAPHS_COVERAGE") != nullptr)
        for (const auto& [name, graphs] : coverage.graphs)
          std::cerr << name << ' ' << graphs.first << ' ' << graphs.second << '\n';
      return status;
    });
    if (failure.empty()) break;
    ++findings;
    if (shared()->done) {
      std::cout << failure << std::endl;
      break;
    }
    report(shared()->seed, failure, options, spent());
    first = shared()->seed + 1;
  }
  std::cout << shared()->programs << " programs, " << shared()->rejected << " of them not built, " << findings
            << " findings, " << spent() << " s" << std::endl;
  return findings == 0 ? 0 : 1;
}

}  // namespace
}  // namespace syncline::graphs

int main(int argc, char** argv) {
  syncline::graphs::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--no-shrink") {
      options.shrink = false;
      continue;
    }
    if (i + 1 == argc) {
      std::cerr << "graphs_fuzz: " << name << " wants a number\n";
      return 2;
    }
    const std::string value = argv[++i];
    if (name == "--first") options.first = std::stoull(value);
    else if (name == "--count") options.count = std::stoull(value);
    else if (name == "--seconds") options.seconds = std::stod(value);
    else if (name == "--findings") options.findings = std::stoi(value);
    else if (name == "--coverage") options.coverage = std::stoi(value);
    else if (name == "--by-parts") options.by_parts = std::stoi(value);
    else if (name == "--show") options.show = std::stoull(value);
    else {
      std::cerr << "graphs_fuzz: no option " << name << "\n";
      return 2;
    }
  }
  if (options.show != 0) {
    std::cout << syncline::graphs::print(syncline::graphs::draw_program(options.show));
    return 0;
  }
  return syncline::graphs::run(options);
}
