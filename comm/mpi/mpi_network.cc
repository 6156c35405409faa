#include "comm/mpi/mpi_network.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <utility>

#include "comm/worker/backoff.h"
#include "comm/worker/stall_watch.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

// How long abandon() waits.
constexpr std::chrono::seconds kHalfReceived{1};

// Message tags. Channel c has the tag kFirstChannel + c.
enum : int { kNote = MpiLibrary::kGroupTag + 1, kReport, kFirstChannel };

void check(int code, const char* call) { check_mpi(code, call, "a message between nodes"); }

// MPI counts the bytes of a message in an int.
int count_of(std::size_t bytes) {
  SYNCLINE_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(bytes);
}

bool is_done(const LockedMpi& mpi, MpiRequest& request) {
  if (request == MpiRequest::kNull) return true;
  int done = 0;
  check(mpi->test(&request, &done), "MPI_Test");
  return done != 0;
}

void wait_until(const std::function<bool()>& condition) {
  for (Backoff backoff; !condition();) backoff.next();
}

}  // namespace

MpiNetwork::MpiNetwork(MpiHandle job, Topology topology, const WorkerOptions& limits)
    : job_(std::move(job)),
      topology_(std::move(topology)),
      limits_(limits),
      channels_(static_cast<std::size_t>(channels_of(topology_))) {}

// Tests every request, also behind one that is open: MPI works on all of them, and each completed one becomes null.
bool MpiNetwork::all_done(const LockedMpi& mpi, std::vector<MpiRequest>& requests) {
  bool all = true;
  for (MpiRequest& request : requests) {
    if (request == MpiRequest::kNull) continue;
    const bool done = is_done(mpi, request);
    if (done) ++moved_;
    all = all && done;
  }
  return all;
}

void MpiNetwork::start(int channel, const Messages& messages) {
  const LockedMpi mpi;
  Channel& open = channels_[static_cast<std::size_t>(channel)];
  open.sends.clear();
  open.receives.clear();
  open.receivers.clear();
  open.senders.clear();
  for (const Messages::Incoming& message : messages.receives) {
    open.senders.push_back(message.node);
    open.receives.push_back(MpiRequest::kNull);
    check(mpi->receive(message.data, count_of(message.bytes), peer_on(topology_, channel, message.node),
                       kFirstChannel + channel, job_.get(), &open.receives.back()),
          "MPI_Irecv");
  }
  for (const Messages::Outgoing& message : messages.sends) {
    open.receivers.push_back(message.node);
    open.sends.push_back(MpiRequest::kNull);
    check(mpi->send(message.data, count_of(message.bytes), peer_on(topology_, channel, message.node),
                    kFirstChannel + channel, job_.get(), &open.sends.back()),
          "MPI_Isend");
  }
}

bool MpiNetwork::test(int channel) {
  const LockedMpi mpi;
  Channel& open = channels_[static_cast<std::size_t>(channel)];
  const bool received = all_done(mpi, open.receives);
  return all_done(mpi, open.sends) && received;
}

bool MpiNetwork::has_come(int channel, int node) const {
  const Channel& open = channels_[static_cast<std::size_t>(channel)];
  const auto all_done = [&](const std::vector<int>& nodes, const std::vector<MpiRequest>& requests) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i] == node && requests[i] != MpiRequest::kNull) return false;
    return true;
  };
  return all_done(open.senders, open.receives) && all_done(open.receivers, open.sends);
}

void MpiNetwork::abandon() noexcept try {
  abandoned_ = true;
  std::vector<std::vector<MpiRequest>*> all;
  for (Channel& channel : channels_) all.push_back(&channel.receives);
  {
    const LockedMpi mpi;
    for (const auto* requests : all)
      for (const MpiRequest request : *requests)
        if (request != MpiRequest::kNull) mpi->cancel(request);  // if it fails, the request stays open
  }
  const auto done = [&] {
    const LockedMpi mpi;
    return std::ranges::all_of(all, [&](auto* requests) { return all_done(mpi, *requests); });
  };
  const auto end = std::chrono::steady_clock::now() + kHalfReceived;
  for (Backoff backoff; !done(); backoff.next()) {
    if (std::chrono::steady_clock::now() < end) continue;
    std::fprintf(stderr,
                 "syncline: rank %d: a message of the failed collective is half received; MPI may write more of it\n",
                 topology_.shown(topology_.rank));
    return;
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "syncline: rank %d cannot end its messages: %s\n", topology_.shown(topology_.rank),
               error.what());
}

template <class Message>
void MpiNetwork::drop_delivered(const LockedMpi& mpi, std::list<Sent<Message>>& sent) {
  std::erase_if(sent, [&](Sent<Message>& one) { return is_done(mpi, one.request); });
}

void MpiNetwork::post_note(std::uint64_t note) {
  if (topology_.rank != 0) return;
  const LockedMpi mpi;
  drop_delivered(mpi, notes_sent_);
  ++notes_;
  for (int r = 1; r < topology_.size(); ++r) {
    auto& sent = notes_sent_.emplace_back(Sent<std::uint64_t>{note, MpiRequest::kNull});
    check(mpi->send(&sent.message, sizeof note, r, kNote, job_.get(), &sent.request), "MPI_Isend");
  }
}

std::optional<std::uint64_t> MpiNetwork::take_note() {
  if (topology_.rank == 0) return {};
  const LockedMpi mpi;
  int there = 0, bytes = 0, from = 0;
  check(mpi->probe(0, kNote, job_.get(), &there, &bytes, &from), "MPI_Iprobe");
  if (there == 0) return {};
  std::uint64_t note = 0;
  check(mpi->receive_probed(&note, sizeof note, 0, kNote, job_.get()), "MPI_Recv");
  ++notes_;
  return note;
}

void MpiNetwork::post_report(std::span<const std::byte> report) {
  const LockedMpi mpi;
  drop_delivered(mpi, reports_sent_);
  const Report shared = std::make_shared<const std::vector<std::byte>>(report.begin(), report.end());
  for (int n = 0; n < topology_.node_count(); ++n)
    for (const int r : topology_.nodes[static_cast<std::size_t>(n)]) {
      if (n == topology_.node) continue;
      auto& sent = reports_sent_.emplace_back(Sent<Report>{shared});
      // Synchronous sends complete when the reports are received; close() waits for that.
      check(
          mpi->send_synchronous(shared->data(), static_cast<int>(report.size()), r, kReport, job_.get(), &sent.request),
          "MPI_Issend");
    }
}

bool MpiNetwork::take_report(std::vector<std::byte>& report) {
  const LockedMpi mpi;
  int there = 0, bytes = 0, from = 0;
  check(mpi->probe(MpiLibrary::kAnySource, kReport, job_.get(), &there, &bytes, &from), "MPI_Iprobe");
  if (there == 0) return false;
  report.resize(static_cast<std::size_t>(bytes));
  check(mpi->receive_probed(report.data(), bytes, from, kReport, job_.get()), "MPI_Recv");
  return true;
}

// Receives every message, as MPI requires before its end. Polls instead of blocking: other ranks may come to their end
// only after this one has served them on another communicator.
void MpiNetwork::deliver() {
  MpiRequest told = MpiRequest::kNull, end = MpiRequest::kNull;
  std::uint64_t posted = notes_;
  {
    const LockedMpi mpi;
    check(mpi->start_broadcast(&posted, sizeof posted, 0, job_.get(), &told), "MPI_Ibcast");
  }
  wait_until([&] {
    const LockedMpi mpi;
    return is_done(mpi, told);
  });
  wait_until([&] { return notes_ >= posted || (take_note() && notes_ >= posted); });
  std::vector<std::byte> report;
  bool here = false;
  wait_until([&] {
    while (take_report(report)) continue;
    const LockedMpi mpi;
    drop_delivered(mpi, notes_sent_);
    drop_delivered(mpi, reports_sent_);
    if (!notes_sent_.empty() || !reports_sent_.empty()) return false;
    if (!std::exchange(here, true)) check(mpi->start_barrier(job_.get(), &end), "MPI_Ibarrier");
    return is_done(mpi, end);
  });
}

bool MpiNetwork::idle() const {
  const auto done = [](MpiRequest request) { return request == MpiRequest::kNull; };
  const auto all = [&](const auto& requests) { return std::all_of(requests.begin(), requests.end(), done); };
  return std::all_of(channels_.begin(), channels_.end(),
                     [&](const Channel& channel) { return all(channel.sends) && all(channel.receives); });
}

bool MpiNetwork::close(bool clean, const std::function<Missing()>& missing) noexcept {
  MpiLife& life = *job_.life();
  if (!idle() || abandoned_ || std::uncaught_exceptions() > 0) life.session->abandon();
  if (!clean) life.orderly = false;
  if (!life.session->abandoned()) try {
      const std::string at_end =
          join_text("rank ", topology_.shown(topology_.rank), " of ", topology_.job.size, " is at its end and waits ");
      if (life.may_free()) {
        const StallWatch watch(
            limits_,
            [&] {
              Missing others = missing();
              others.text =
                  join_text(at_end, "for the other ranks to end", others.text.empty() ? "" : ": ", others.text);
              return others;
            },
            abort_mpi);
        deliver();
      }
      life.end.emplace(
          limits_,
          [at_end] { return Missing{join_text(at_end, "in MPI_Finalize, or in a call before it that frees memory")}; },
          abort_mpi);
    } catch (const std::exception&) {
      life.session->abandon();
    }
  return idle() && notes_sent_.empty() && reports_sent_.empty();
}

}  // namespace syncline::comm
