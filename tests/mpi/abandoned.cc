// Two ranks, each a node of its own: a receive that was abandoned writes nothing, whenever its message comes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "comm/mpi/mpi_network.h"
#include "comm/worker/backoff.h"

namespace syncline::comm {
namespace {

constexpr std::size_t kLarge = 8 << 20, kTiny = 100;

void wait_for(Network& network, int channel) {
  for (Backoff backoff; !network.test(channel);) backoff.next();
}

// Both ranks have come.
void meet(Network& network, int other) {
  char sent = 0, received = 0;
  Messages messages;
  messages.sends.push_back({other, &sent, 1});
  messages.receives.push_back({other, &received, 1});
  network.start(kMeeting, messages);
  wait_for(network, kMeeting);
}

Messages receives(std::vector<char>& large, std::vector<char>& tiny) {
  Messages messages;
  messages.receives = {{1, large.data(), large.size()}, {1, tiny.data(), tiny.size()}};
  return messages;
}

bool test(Network& network, int rank) {
  std::vector<char> large(kLarge, 7), tiny(kTiny, 7);
  if (rank == 1) {
    meet(network, 0);  // behind the abandoned receives
    Messages messages;
    messages.sends = {{0, large.data(), large.size()}, {0, tiny.data(), tiny.size()}};
    network.start(kExchange, messages);
    wait_for(network, kExchange);
    meet(network, 0);
    return true;
  }
  network.start(kExchange, receives(large, tiny));
  network.abandon();
  std::ranges::fill(large, 1);
  std::ranges::fill(tiny, 1);
  meet(network, 1);
  // MPI receives what comes: as the messages of another communicator would let it.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  std::vector<std::byte> report;
  while (std::chrono::steady_clock::now() < end) static_cast<void>(network.take_report(report));
  const auto is_one = [](char byte) { return byte == 1; };
  const bool untouched = std::ranges::all_of(large, is_one) && std::ranges::all_of(tiny, is_one);
  if (!untouched) std::fputs("an abandoned receive has written to its memory\n", stderr);
  network.start(kExchange, receives(large, tiny));
  wait_for(network, kExchange);
  meet(network, 1);
  return untouched;
}

int run() {
  const auto life = std::make_shared<MpiLife>(MpiSession::join());
  MpiComm comm = MpiComm::kNull;
  MpiHandle job = [&] {
    const LockedMpi mpi;
    check_mpi(mpi->duplicate_world(&comm), "MPI_Comm_dup", "the test");
    return MpiHandle(mpi, life, comm);
  }();
  const int rank = job.rank();
  MpiNetwork network(std::move(job), make_topology(rank, std::vector<int>{0, 1}), {});
  const bool good = test(network, rank);
  network.abandon();  // on both ranks: neither waits for the other at its end
  return network.close(true, [] { return Missing{}; }) && good ? 0 : 1;  // without MPI_Finalize, as after a failure
}

}  // namespace
}  // namespace syncline::comm

int main() { return syncline::comm::run(); }
