// The ranks of a job, as Python sees them: one communicator for the process, joined when the package is imported.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "comm/launch.h"
#include "comm/make_communicator.h"
#include "ops/kernels/parallel.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "runtime/data_parallel.h"
#include "runtime/keras_json.h"
#include "runtime/session.h"

namespace syncline::python {
namespace {

std::unique_ptr<comm::Communicator>& wire() {
  static std::unique_ptr<comm::Communicator> communicator;
  return communicator;
}

comm::Communicator& joined() {
  if (!wire()) fail<CommError>("this process has not joined the job's ranks");
  return *wire();
}

// As one of several ranks: over MPI, and from now on functions are computed by all ranks together.
void join(bool local_feeds) {
  {
    nb::gil_scoped_release release;
    wire() = comm::make_communicator(comm::options_for_threads(kernels::thread_count(), keras_json().comm));
  }
  if (joined().size() > 1) Session::current().distribute(make_data_parallel(joined(), {.local_feeds = local_feeds}));
}

comm::Reduce reduction_from(const std::string& name) {
  if (name == "sum") return comm::Reduce::kSum;
  if (name == "max") return comm::Reduce::kMax;
  if (name == "min") return comm::Reduce::kMin;
  fail<ValueError>("all_reduce: unknown op '", name, "'; give sum, max, min or mean");
}

nb::object all_reduce(nb::handle value, const std::string& op) {
  const HeldArray held = array_from(value);
  Array result = held.array.copy();
  const comm::Reduce reduce = reduction_from(op);
  {
    nb::gil_scoped_release release;
    joined().wait(joined().all_reduce({}, result.raw(), result.size(), result.dtype(), reduce));
  }
  return array_to(std::move(result));
}

// Bytes of rank `root` for every rank; the others need not know how many.
nb::bytes broadcast(const nb::bytes& value, int root) {
  auto count = static_cast<std::int64_t>(value.size());
  std::string bytes;
  {
    nb::gil_scoped_release release;
    joined().wait(joined().broadcast({}, &count, sizeof count, root));
    if (joined().rank() == root) bytes.assign(static_cast<const char*>(value.data()), value.size());
    bytes.resize(static_cast<std::size_t>(count));
    joined().wait(joined().broadcast({}, bytes.data(), count, root));
  }
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_distributed(nb::module_& m) {
  m.def("launched", [] {
    const comm::Launch launch = comm::read_launch_environment();
    return nb::make_tuple(launch.rank, launch.size, launch.local_rank, launch.launcher);
  });
  m.def("join", &join);
  m.def("leave", [] {
    Session::current().undistribute();
    nb::gil_scoped_release release;
    wire().reset();
  });
  // A forked child shares the parent's connections and must not touch them, not even to close them.
  m.def("forget", [] {
    Session::current().undistribute();
    static_cast<void>(wire().release());
  });
  m.def("rank", [] { return wire() ? wire()->rank() : 0; });
  m.def("ranks", [] { return wire() ? wire()->size() : 1; });
  m.def("all_reduce", &all_reduce);
  m.def("broadcast", &broadcast);
  m.def("barrier", [] {
    nb::gil_scoped_release release;
    joined().barrier();
  });
  m.def("abort", [](int exit_code) { joined().abort_job(exit_code); });
  m.def("threads", &kernels::thread_count);
  m.def("set_threads", &kernels::set_thread_count);
}

}  // namespace syncline::python
