#include "comm/shared/reports.h"

#include <algorithm>
#include <cstring>

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 500ms;

}  // namespace

Reports::Reports(const Topology& topology, Network& network, const Board& board)
    : topology_(topology), network_(network), board_(board), absent_(topology.nodes.size()) {}

void Reports::exchange(std::uint64_t round) {
  if (topology_.node_count() == 1) return;
  const auto now = Clock::now();
  if (now - posted_ >= kPause && board_.speaks(round)) post();
  if (now - posted_ >= kPause) posted_ = now;
  while (network_.take_report(incoming_)) {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at + sizeof(Report) <= incoming_.size(); at += sizeof(Report)) {
      Report report;
      std::memcpy(&report, incoming_.data() + at, sizeof report);
      heard_[static_cast<int>(report.rank)] = report;
    }
  }
  note_absent_nodes();
}

void Reports::post() {
  std::vector<Report> reports;
  for (int l = 0; l < board_.ranks(); ++l)
    reports.push_back({board_.of(l).arrived, static_cast<std::uint32_t>(topology_.own()[static_cast<std::size_t>(l)]),
                       board_.state_of(l), board_.position_of(l)});
  network_.post_report(std::as_bytes(std::span(reports)));
}

void Reports::note_absent_nodes() {
  const std::lock_guard lock(mutex_);
  for (int n = 0; n < topology_.node_count(); ++n) {
    bool all = true;
    for (int channel = 0; channel < kChannels; ++channel) all = all && network_.has_come(channel, n);
    absent_[static_cast<std::size_t>(n)] = !all;
  }
}

std::string Reports::missing(std::uint64_t round) const {
  const std::lock_guard lock(mutex_);
  std::string names, silent;
  for (int n = 0; n < topology_.node_count(); ++n)
    for (const int r : topology_.nodes[static_cast<std::size_t>(n)]) {
      if (n == topology_.node) continue;
      const auto heard = heard_.find(r);
      if (heard == heard_.end()) {
        if (absent_[static_cast<std::size_t>(n)]) silent += join_text(silent.empty() ? "rank " : ", rank ", r);
      } else if (heard->second.round < round) {
        names += names.empty() ? "" : ", ";
        names += describe_rank(r, heard->second.state, heard->second.position);
      }
    }
  if (!names.empty()) names += " has not called it";
  if (!silent.empty())
    names += join_text(names.empty() ? "" : "; ", silent, " on another node does not answer: it is stopped, or its ",
                       "node or the network is down");
  return names;
}

}  // namespace syncline::comm
