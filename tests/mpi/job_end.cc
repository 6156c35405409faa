// A job that fails in the way that its argument names; expect_exit.sh checks its end.
#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "syncline/distributed/launch.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/error.h"

namespace {
bool no_pages = false;
}

// In place of the C library's: this rank may find no pages for its shared memory.
extern "C" int posix_fallocate(int file, off_t at, off_t bytes) {
  static const auto allocate = reinterpret_cast<decltype(&posix_fallocate)>(::dlsym(RTLD_NEXT, "posix_fallocate"));
  return no_pages ? ENOSPC : allocate(file, at, bytes);
}

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

void reduce(Communicator& comm, std::int64_t count) {
  std::vector<float> data(static_cast<std::size_t>(count), 1.f);
  comm.wait(comm.all_reduce(Tag{0xbeef, 4, 2}, data.data(), count, DType::kFloat32, Reduce::kSum));
}

// The last rank's fault while the others wait for it.
void misbehave(const std::string& how, Communicator& comm) {
  if (how == "kill") raise(SIGKILL);
  if (how == "throw") throw std::runtime_error("the data set is gone");
  if (how == "late" || how == "caught") std::this_thread::sleep_for(30s);
  if (how == "mismatch") reduce(comm, 7);
}

// The last rank's faults before its start, and after its last collective.
void misbehave_at_start(const std::string& how) {
  const Launch launch = read_launch_environment();
  if (launch.rank + 1 != launch.size) return;
  if (how == "absent") std::this_thread::sleep_for(30s);
  if (how == "tardy") std::this_thread::sleep_for(1500ms);
  no_pages = how == "pages";
}
void misbehave_at_end(const std::string& how, const Communicator& comm) {
  if (comm.rank() + 1 != comm.size()) return;
  if (how == "stopped") raise(SIGSTOP);
  if (how == "busy") std::this_thread::sleep_for(5s);
}

void run(const std::string& how, Communicator& comm) {
  reduce(comm, 100);
  if (comm.rank() == comm.size() - 1) misbehave(how, comm);
  reduce(comm, 1 << 20);
}

int start(const std::string& how) {
  CommOptions options{.worker = {.wait_limit = how == "late" ? 4s : 60s}};
  if (how == "caught") options.worker = {.wait_limit = 3s};
  if (how == "absent") options.worker = {.stall_limit = 500ms, .wait_limit = 2s};
  if (how == "stopped") options.worker = {.stall_limit = 1s, .wait_limit = 4s};  // the start may take a second
  if (how == "busy") options.worker = {.stall_limit = 1s, .wait_limit = 3s};
  if (how == "tardy") options.worker = {.stall_limit = 500ms};
  if (how == "tables" && read_launch_environment().rank == 2) options.algorithms.sums.clear();
  if (how == "transports" && read_launch_environment().rank == 2) options.transport = Transport::kMpi;
  misbehave_at_start(how);
  if (how == "unwind") {  // no abort_job: the exception destroys the communicator on its way out
    const auto comm = make_communicator(options);
    if (comm->rank() == comm->size() - 1) throw std::runtime_error("the data set is gone");
    reduce(*comm, 100);
  }
  if (how == "caught") {
    auto comm = make_communicator(options);
    try {
      run(how, *comm);
    } catch (const StallError& error) {
      comm.reset();
      std::fprintf(stderr, "the communicator has ended after: %s\n", error.what());
      return 66;
    }
  }
  if (how == "stopped" || how == "busy") {  // while the other rank destroys its communicator
    const auto comm = make_communicator(options);
    run(how, *comm);
    misbehave_at_end(how, *comm);
    return 0;
  }
  return run_job(
      "job_end",
      [&] {
        if (how == "options") fail<ValueError>("there is no such option");
        return options;
      },
      [&](Communicator& comm) {
        run(how, comm);
        if (how == "fewer" && comm.rank() > 0) reduce(comm, 100);
      });
}

}  // namespace
}  // namespace syncline::comm

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    return syncline::comm::start(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
