// Readers that crash, loop, or use too much memory: the caller gets a one-line error within the time limit.
#include "tools/confined.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/printable.h"
#include "tests/io/scratch.h"

namespace syncline::tools {
namespace {

using io::message_of;

const Limits kLimits{.memory = 64, .seconds = 20};

std::string trouble(const Limits& limits, const std::function<std::string()>& work) {
  std::string message = message_of<ConfinementError>([&] { run_confined({"a.h5"}, limits, work); });
  EXPECT_TRUE(message.starts_with("'a.h5': ")) << message;
  EXPECT_ONE_LINE(message);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
  EXPECT_EQ(errno, ECHILD);
  return message;
}

TEST(Confined, ReturnsTheText) {
  EXPECT_EQ(run_confined({}, {}, [] { return std::string("answer"); }), "answer");
  EXPECT_EQ(run_confined({"a"}, kLimits, [] { return std::string(); }), "");
  const std::string large(std::size_t{20} << 20, 'x');
  EXPECT_EQ(run_confined({"a"}, kLimits, [&] { return large; }), large);
}

TEST(Confined, RunsInAnotherProcess) {
  static int touched = 0;
  const std::string id = run_confined({}, kLimits, [] {
    touched = 1;
    return std::to_string(::getpid());
  });
  EXPECT_NE(id, std::to_string(::getpid()));
  EXPECT_EQ(touched, 0);
}

TEST(Confined, AnErrorIsPassedOn) {
  const auto work = []() -> std::string { fail<IoError>("the file is\x1b[31m bad"); };
  EXPECT_EQ(message_of([&] { run_confined({"a"}, kLimits, work); }), "the file is?[31m bad");
}

TEST(Confined, ACrash) {
  const auto crash = []() -> std::string {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
    return "";
  };
  EXPECT_EQ(trouble(kLimits, crash),
            "'a.h5': the process that read it crashed (signal 11, Segmentation fault); the file is damaged or hostile");
  EXPECT_CONTAINS(trouble(kLimits, []() -> std::string { std::abort(); }), "crashed (signal 6, Aborted)");
}

TEST(Confined, AnEndWithoutAnAnswer) {
  EXPECT_CONTAINS(trouble(kLimits, []() -> std::string { ::_exit(0); }), "ended without a result");
}

TEST(Confined, LoopsEnd) {
  const auto loop = []() -> std::string {
    volatile bool forever = true;
    while (forever) {
    }
    return "";
  };
  EXPECT_EQ(trouble({.memory = 64, .seconds = 1}, loop),
            "'a.h5': reading it took more than 1 s and was stopped; --seconds raises the limit");
}

TEST(Confined, SleepersEnd) {
  const auto sleep = []() -> std::string {
    for (;;) ::pause();
  };
  EXPECT_CONTAINS(trouble({.memory = 64, .seconds = 1}, sleep), "took more than 1 s");
}

TEST(Confined, MemoryIsLimited) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers need all address space";
  const auto eat = []() -> std::string { return std::string(std::size_t{100} << 20, 'x'); };
  EXPECT_EQ(trouble(kLimits, eat), "'a.h5': reading it takes more than 64 MiB of memory; --memory raises the limit");
}

// A compromised child must not make the parent allocate memory beyond the limit.
TEST(Confined, AnAnswerBeyondTheLimitIsRefused) {
  const auto large = []() -> std::string {
    rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &none);
    return std::string(std::size_t{65} << 20, 'x');
  };
  if (!kSanitized && ::geteuid() != 0) GTEST_SKIP() << "only root lifts a limit";
  EXPECT_CONTAINS(trouble(kLimits, large), "more than 64 MiB");
}

TEST(Confined, NothingIsWritten) {
  const io::Scratch scratch;
  const std::string path = scratch.path("b");
  const auto write = [&] {
    FILE* file = std::fopen(path.c_str(), "wb");
    if (file != nullptr) std::fputs("text", file);
    return std::string(file != nullptr && std::fclose(file) == 0 ? "written" : "refused");
  };
  try {
    EXPECT_EQ(run_confined({"a"}, kLimits, write), "refused");
  } catch (const ConfinementError& error) {
    EXPECT_CONTAINS(error.what(), "File size limit exceeded");
  }
  if (!scratch.files().empty()) {
    EXPECT_EQ(io::read_file(path), "");
  }
}

TEST(Confined, Printable) {
  EXPECT_EQ(printable("a\x1b[0m\n\x7f\xc3\xa4"), "a?[0m??\xc3\xa4");
  EXPECT_EQ(printable("a\nb\t", true), "a\nb?");
}

}  // namespace
}  // namespace syncline::tools
