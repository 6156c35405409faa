// The ranks of a job: one communicator for the process, joined when the Python package is imported.
#include "python/binding/distributed.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "comm/mpi/mpi_library.h"
#include "ops/graph/attrs.h"
#include "ops/kernels/digest.h"
#include "ops/kernels/parallel.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/running.h"
#include "runtime/placement/agreement.h"
#include "runtime/placement/strategy.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/ending.h"
#include "syncline/distributed/exit_codes.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/launch.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"

namespace syncline::python {
namespace {

struct Communicators {
  std::unique_ptr<comm::Communicator> job;
  std::vector<std::unique_ptr<comm::Communicator>> groups;  // of subsets of the ranks, in the order of creation
};

// Constructed before join() registers its exit handler, so it is destroyed after the handler has run.
Communicators& communicators() {
  static Communicators all;
  return all;
}

std::unique_ptr<comm::Communicator>& communicator() { return communicators().job; }

comm::Communicator& joined() {
  if (!communicator())
    fail<CommError>("this process has not joined the job's ranks; a worker process (multiprocessing) is not a rank");
  return *communicator();
}

using Seconds = std::chrono::duration<double>;

void disconnect() {
  while (!communicators().groups.empty()) communicators().groups.pop_back();
  communicator().reset();
}

// Starts the collective with which each rank reports the end of its program.
comm::Ticket say_goodbye() {
  static std::int32_t nothing = 0;
  return joined().all_reduce({.plan = comm::kEndOfProgram}, &nothing, 1, DType::kInt32, comm::Reduce::kMax);
}

// True if every other rank's program ends within `patience` too. Throws CommError if one submits another collective.
bool all_end(comm::Ticket goodbye, Seconds patience) {
  const auto begin = std::chrono::steady_clock::now();
  for (Seconds waited{0}; !joined().done(goodbye); waited = std::chrono::steady_clock::now() - begin) {
    if (waited > patience) return false;
    std::this_thread::sleep_for(std::clamp(waited / 4, Seconds(1e-4), Seconds(0.02)));
  }
  return true;
}

// Ends the program with this exit code. With status 0 it waits for the other ranks like a step, with reports and limit.
// With another status, unless all ranks end within 3 s, it ends the job.
void leave(int status) {
  if (!communicator()) return;
  const bool good = status == 0;
  bool told = false;
  std::string others = "other ranks still run";
  int code = status;
  try {
    const comm::Ticket goodbye = say_goodbye();
    told = true;
    if (good) joined().wait(goodbye);
    if (good || all_end(goodbye, Seconds(3))) return disconnect();
  } catch (const CommError& error) {
    others = error.what();
    if (good) code = exit_code_of(error);
  }
  if (good && !told) return disconnect();  // the wire failed earlier, and the program ignored it
  // The ranks that still run get the same error and end the job, with a traceback of the place.
  if (good) std::this_thread::sleep_for(std::chrono::seconds(10));
  std::fprintf(stderr, "syncline: rank %d of %d ended with exit code %d: %s\n", joined().rank(), joined().size(),
               status, others.c_str());
  joined().abort_job(code);
}

// In scripts rank 0 may work for minutes while the others wait for the next step. A rank that ends is noticed at once,
// whatever the limit. In seconds.
double wait_limit() { return keras_json().comm.wait_limit.value_or(1800); }

// Joins the job's ranks; from then on all ranks compute functions together. Returns true if MPI was initialized before,
// by other code that finalizes it when Python ends: then the caller must run leave() before that. Otherwise an exit
// handler of the process runs leave(), because only there the exit code is known.
bool join() {
  const bool others_mpi = comm::mpi_is_initialized();
  comm::Settings settings = keras_json().comm;
  settings.wait_limit = wait_limit();
  {
    const WithoutGil without_gil;
    communicator() = comm::make_communicator(comm::options_for_threads(thread_count(), settings));
  }
  if (joined().size() > 1 || keras_json().parts > 0) Session::current().distribute(make_data_parallel(joined()));
  static const pid_t rank = getpid();
  if (!others_mpi) on_exit([](int status, void*) { return getpid() == rank ? leave(status) : void(); }, nullptr);
  return others_mpi;
}

// Collective. The ranks must have joined.
void set_parts(std::int64_t parts) {
  const Alone alone;
  first_parts(joined().size(), parts);  // throws for a wrong number
  Session& session = Session::current();
  if (session.steps() > 0)
    fail<ValueError>("set_parts: the session has run ", session.steps(), " steps; call it before the first one");
  const bool local = session.strategy() != nullptr && session.strategy()->feeds_are_local();
  if (joined().size() == 1 && parts == 0) session.undistribute();
  else session.distribute(make_data_parallel(joined(), {.local_feeds = local, .parts = static_cast<int>(parts)}));
}

// No step runs during a fork, so the child's copy of the session is consistent. Shared variables stay in memory that
// the ranks go on writing.
void before_fork() {
  const WithoutGil without_gil;
  session_mutex().lock();
}

// A forked child shares the parent's connections and must not use or close them: the communicators are leaked.
void after_fork_in_child() {
  session_mutex().unlock();
  Session::current().undistribute();
  for (auto& group : communicators().groups) static_cast<void>(group.release());
  communicators().groups.clear();
  static_cast<void>(communicator().release());
}

}  // namespace

comm::Communicator& communicator_of(int group) {
  comm::Communicator& all = joined();
  return group == 0 ? all : *communicators().groups.at(static_cast<std::size_t>(group) - 1);
}

int make_group(std::span<const int> ranks) {
  communicators().groups.push_back(joined().group(ranks));
  return static_cast<int>(communicators().groups.size());
}

void bind_distributed(nb::module_& m) {
  m.def("launched", [] {
    const comm::Launch launch = comm::read_launch_environment();
    return nb::make_tuple(launch.rank, launch.size, launch.local_rank, launch.launcher);
  });
  m.def("parts", [] {
    const Strategy* strategy = Session::current().strategy();
    return strategy != nullptr ? strategy->parts() : 0;
  });
  m.def("first_parts", &first_parts);
  m.def("wanted_parts", [] { return keras_json().parts; });
  m.def("set_parts", &set_parts);
  m.def("join", &join);
  m.def("leave", [](int status) {
    const WithoutGil without_gil;
    leave(status);
  });
  m.def("before_fork", &before_fork);
  m.def("after_fork_in_parent", [] { session_mutex().unlock(); });
  m.def("after_fork_in_child", &after_fork_in_child);
  m.def("rank", [] { return communicator() ? communicator()->rank() : 0; });
  m.def("ranks", [] { return communicator() ? communicator()->size() : 1; });
  m.def("set_local_feeds", [](bool local) {
    if (Strategy* strategy = Session::current().strategy()) strategy->set_feeds_local(local);
  });
  m.def("local_feeds", [] {
    const Strategy* strategy = Session::current().strategy();
    return strategy != nullptr && strategy->feeds_are_local();
  });
  m.def("post_note", [](std::uint64_t note) {
    comm::Communicator& communicator = joined();
    const WithoutGil without_gil;
    communicator.post_note(note);
  });
  m.def("take_note", [] {
    comm::Communicator& communicator = joined();
    const WithoutGil without_gil;
    return communicator.take_note();
  });
  // A checksum of 32 bits of the bytes, starting from `begun`; not secure against deliberate collisions.
  m.def("digest",
        [](const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& bytes,
           std::uint64_t begun) { return attrs::mix(begun, kernels::digest(bytes.data(), bytes.size())) >> 32; });
  m.def("wait_limit", &wait_limit);
  m.def("report_delay", [] { return comm::report_delay(joined()).count(); });
  m.def("abort", [](int exit_code) {
    const WithoutGil without_gil;
    joined().abort_job(exit_code);
  });
  m.def("setting", [] { return describe_setting(Session::current(), communicator().get()); });
  m.def("change_of_setting", &change_of_setting);
  m.def("threads", &thread_count);
  m.def("set_threads", &set_thread_count);
}

}  // namespace syncline::python
