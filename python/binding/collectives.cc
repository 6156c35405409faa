// Collectives of arrays for programs, over all ranks or a group. Errors about dtypes, shapes and numbers of rows are
// thrown on all ranks of the group or on none.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/distributed.h"
#include "python/binding/running.h"

namespace syncline::python {
namespace {

using Counts = std::vector<std::int64_t>;

comm::Reduce reduction_from(std::string_view caller, const std::string& name) {
  if (name == "sum") return comm::Reduce::kSum;
  if (name == "max") return comm::Reduce::kMax;
  if (name == "min") return comm::Reduce::kMin;
  fail<ValueError>(caller, ": unknown op '", name, "'; give sum, max, min or mean");
}

// The name of the call, for errors.
comm::Tag call_of(const std::string& name) { return {.names = comm::remember_names("distributed." + name)}; }

// Description of a rank's array, sent to the other ranks.
struct Given {
  std::int64_t rows = 0;
  std::array<char, 120> what{};  // text: dtype, and shape without the number of rows
};

std::string text_of(const Given& given) { return {given.what.data(), strnlen(given.what.data(), given.what.size())}; }

Given describe(const Array& array) {
  Given given;
  Shape row = array.shape();
  if (row.ndim() > 0) {
    given.rows = row[0];
    row.erase(0);
  }
  const std::string text = join_text(array.dtype(), array.shape().ndim() == 0 ? " numbers" : " rows of ", row);
  text.copy(given.what.data(), given.what.size() - 1);
  return given;
}

// The descriptions of all ranks. Throws ValueError if dtypes or shapes of rows differ.
std::vector<Given> exchange(comm::Communicator& communicator, std::string_view caller, const Given& own) {
  std::vector<Given> all(static_cast<std::size_t>(communicator.size()));
  const Counts bytes(all.size(), sizeof own);
  communicator.wait(communicator.all_gather(call_of(std::string(caller)), &own, all.data(), bytes));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (text_of(all[r]) != text_of(all[0]))
      fail<ValueError>(caller, ": rank 0 gives ", text_of(all[0]), ", rank ", r, " ", text_of(all[r]),
                       "; give arrays of equal dtype and, except for the number of rows, equal shape");
  return all;
}

nb::object all_reduce(int group, nb::handle value, const std::string& op) {
  const HeldArray held = array_from(value);
  Array result = held.array.copy();
  const comm::Reduce reduce = reduction_from("all_reduce", op);
  comm::Communicator& communicator = communicator_of(group);
  {
    const Alone alone(group == 0);
    const comm::Tag tag = call_of(join_text("all_reduce of ", result.dtype(), result.shape()));
    communicator.wait(communicator.all_reduce(tag, result.raw(), result.size(), result.dtype(), reduce));
  }
  return array_to(std::move(result));
}

nb::object all_gather(int group, nb::handle value) {
  const HeldArray held = array_from(value);
  const Array own = held.array.shape().ndim() == 0 ? held.array.reshaped({1}) : held.array;
  comm::Communicator& communicator = communicator_of(group);
  Array result;
  {
    const Alone alone(group == 0);
    Shape shape = own.shape();
    shape[0] = 0;
    const std::int64_t row =
        own.shape().product(1, own.shape().ndim()) * static_cast<std::int64_t>(size_of(own.dtype()));
    Counts bytes;
    for (const Given& given : exchange(communicator, "all_gather", describe(own))) {
      shape[0] += given.rows;
      bytes.push_back(given.rows * row);
    }
    result = Array::uninitialized(own.dtype(), shape);
    communicator.wait(communicator.all_gather(call_of("all_gather"), own.raw(), result.raw(), bytes));
  }
  return array_to(std::move(result));
}

nb::object reduce_scatter(int group, nb::handle value, const std::string& op) {
  const HeldArray held = array_from(value);
  const comm::Reduce reduce = reduction_from("reduce_scatter", op);
  comm::Communicator& communicator = communicator_of(group);
  Array own;
  {
    const Alone alone(group == 0);
    const std::vector<Given> all = exchange(communicator, "reduce_scatter", describe(held.array));
    if (held.array.shape().ndim() == 0)
      fail<ValueError>("reduce_scatter: the value is a number, which has no rows; give an array");
    const std::int64_t rows = all[0].rows, size = communicator.size();
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r].rows != rows)
        fail<ValueError>("reduce_scatter: rank 0 gives ", rows, " rows, rank ", r, " ", all[r].rows,
                         "; give arrays of equal shape");
    const std::int64_t width = held.array.shape().product(1, held.array.shape().ndim());
    Counts counts;  // as in numpy.array_split
    std::int64_t begin = 0;
    for (std::int64_t r = 0; r < size; ++r) {
      if (r == communicator.rank()) begin = r * (rows / size) + std::min(r, rows % size);
      counts.push_back((rows / size + (r < rows % size ? 1 : 0)) * width);
    }
    Array data = held.array.copy();
    communicator.wait(communicator.reduce_scatter(call_of("reduce_scatter"), data.raw(), counts, data.dtype(), reduce));
    const std::int64_t own_rows = rows / size + (communicator.rank() < rows % size ? 1 : 0);
    own = data.rows(begin, begin + own_rows).copy();
  }
  return array_to(std::move(own));
}

// The bytes of rank `root` on every rank; the others do not know their number before.
nb::bytes broadcast(int group, const nb::bytes& value, int root) {
  comm::Communicator& communicator = communicator_of(group);
  auto count = static_cast<std::int64_t>(value.size());
  std::string bytes;
  {
    const Alone alone(group == 0);
    const comm::Tag tag = call_of("broadcast");
    communicator.wait(communicator.broadcast(tag, &count, sizeof count, root));
    if (communicator.rank() == root) bytes.assign(static_cast<const char*>(value.data()), value.size());
    bytes.resize(static_cast<std::size_t>(count));
    communicator.wait(communicator.broadcast(tag, bytes.data(), count, root));
  }
  return nb::bytes(bytes.data(), bytes.size());
}

// Broadcasts in place, into an array of bytes.
void broadcast_into(int group, nb::handle bytes, int root) {
  const HeldArray held = array_from(bytes);
  SYNCLINE_CHECK(held.keeper.is_valid() && held.array.dtype() == DType::kUint8);
  comm::Communicator& communicator = communicator_of(group);
  Array array = held.array;
  const Alone alone(group == 0);
  communicator.wait(
      communicator.broadcast(call_of("broadcast"), array.raw(), static_cast<std::int64_t>(array.bytes()), root));
}

}  // namespace

void bind_collectives(nb::module_& m) {
  m.def("all_reduce", &all_reduce);
  m.def("all_gather", &all_gather);
  m.def("reduce_scatter", &reduce_scatter);
  m.def("broadcast", &broadcast);
  m.def("broadcast_into", &broadcast_into);
  m.def("barrier", [](int group) {
    comm::Communicator& communicator = communicator_of(group);
    const Alone alone(group == 0);
    communicator.barrier(call_of("barrier"));
  });
  m.def("make_group", [](const std::vector<int>& ranks) {
    const Alone alone;
    return make_group(ranks);
  });
}

}  // namespace syncline::python
