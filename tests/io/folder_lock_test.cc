// One training at a time saves into a folder. The other one is in this process, in another one, or a Keras job.
#include "io/files/folder_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

using namespace std::chrono_literals;

// Loads only Python's lock, because the package needs its C++ module.
constexpr const char* kPython =
    "import importlib.util, os, sys, time\n"
    "at = importlib.util.spec_from_file_location(\"whole_files\", "
    "\"" SYNCLINE_SOURCE_DIR
    "/python/syncline/checkpoint/whole_files.py\")\n"
    "files = importlib.util.module_from_spec(at)\n"
    "at.loader.exec_module(files)\n"
    "files._PATIENCE = 0\n"
    "lock = files.FolderLock(sys.argv[1])\n";

class FolderLocks : public testing::Test {
 protected:
  // Forks a child: 1 if it gets the lock, 0 if it is refused, -1 if a signal ends it.
  int child_gets_it() const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      try {
        const FolderLock lock(folder_, 0s);
        std::_Exit(1);
      } catch (const IoError&) {
        std::_Exit(0);
      }
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  Outcome run_python(const std::string& code) const {
    write_file(scratch_.path("script.py"), kPython + code);
    return run_shell(python() + " " + scratch_.path("script.py") + " " + folder_);
  }

  const Scratch scratch_;
  const std::string folder_ = scratch_.path("run");
  void SetUp() override { std::filesystem::create_directory(folder_); }
};

TEST_F(FolderLocks, KeepsOthersOffUntilItGoes) {
  {
    const FolderLock lock(folder_);
    EXPECT_EQ(child_gets_it(), 0);
    EXPECT_CONTAINS(read_file(folder_ + "/.lock"), join_text("process ", ::getpid(), " on "));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(child_gets_it(), 1);
}

TEST_F(FolderLocks, ASecondOneInTheProcessDoesNotEndTheFirst) {
  const FolderLock lock(folder_);
  EXPECT_CONTAINS(message_of([&] { FolderLock(scratch_.directory() + "/./run"); }),
                  "another training saves into it (this process)");
  EXPECT_EQ(child_gets_it(), 0);
}

TEST_F(FolderLocks, AChildThatLeavesDoesNotEndItsParents) {
  const FolderLock lock(folder_);
  const pid_t child = ::fork();
  if (child == 0) {
    lock.~FolderLock();
    std::_Exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(child_gets_it(), 0);
}

TEST_F(FolderLocks, EndsWithAProcessThatIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder_);
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/.lock"));
  EXPECT_EQ(child_gets_it(), 1);
}

TEST_F(FolderLocks, WaitsForOneThatIsAboutToEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder_);
    write_file(scratch_.path("held"), "");
    ::usleep(500000);
    std::_Exit(0);
  }
  while (!std::filesystem::exists(scratch_.path("held"))) ::usleep(1000);
  const FolderLock lock(folder_, 30s);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(FolderLocks, ALinkIsNotFollowed) {
  write_file(scratch_.path("victim"), "precious");
  std::filesystem::create_symlink(scratch_.path("victim"), folder_ + "/.lock");
  EXPECT_CONTAINS(message_of([&] { FolderLock lock(folder_); }), "run/.lock', which locks the folder: ");
  EXPECT_EQ(read_file(scratch_.path("victim")), "precious");
}

TEST_F(FolderLocks, AJobOfKerasIsRefused) {
  {
    const FolderLock lock(folder_);
    const Outcome refused = run_python("lock.acquire()\n");
    EXPECT_NE(refused.status, 0);
    EXPECT_CONTAINS(refused.output,
                    join_text("BlockingIOError: another job writes to '", folder_, "': process ", ::getpid()));
    EXPECT_EQ(child_gets_it(), 0);
  }
  EXPECT_EQ(run_python("lock.acquire(); lock.release()\n").status, 0);
}

TEST_F(FolderLocks, AJobOfKerasRefuses) {
  const std::string held = scratch_.path("held"), pid = scratch_.path("pid");
  write_file(scratch_.path("script.py"), std::string(kPython) +
                                             "lock.acquire()\n"
                                             "print(os.getpid(), file=open(\"" +
                                             pid +
                                             "\", \"w\"), flush=True)\n"
                                             "open(\"" +
                                             held +
                                             "\", \"w\").close()\n"
                                             "time.sleep(30)\n");
  ASSERT_EQ(std::system((python() + " " + scratch_.path("script.py") + " " + folder_ + " &").c_str()), 0);
  for (int i = 0; i < 2000 && !std::filesystem::exists(held); ++i) ::usleep(10000);
  ASSERT_TRUE(std::filesystem::exists(held));
  const int process = std::stoi(read_file(pid));
  EXPECT_CONTAINS(message_of([&] { FolderLock(folder_, 0s); }),
                  join_text("another training saves into it (process ", process, " on "));
  EXPECT_EQ(::kill(process, SIGKILL), 0);
  const FolderLock lock(folder_, 30s);
}

TEST_F(FolderLocks, TwoOfKerasInOneProcess) {
  const Outcome outcome = run_python(
      "lock.acquire()\n"
      "try:\n"
      "    files.FolderLock(sys.argv[1]).acquire()\n"
      "except BlockingIOError as error:\n"
      "    print(error)\n"
      "child = os.fork()\n"
      "if child == 0:\n"
      "    try:\n"
      "        files.FolderLock(sys.argv[1]).acquire()\n"
      "    except BlockingIOError:\n"
      "        os._exit(3)\n"
      "    os._exit(0)\n"
      "print(\"child\", os.WEXITSTATUS(os.waitpid(child, 0)[1]))\n");
  EXPECT_CONTAINS(outcome.output, "another training of this process writes to");
  EXPECT_CONTAINS(outcome.output, "child 3");
}

}  // namespace
}  // namespace syncline::io
