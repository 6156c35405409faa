#include "comm/shared/reports.h"

#include <algorithm>
#include <cstring>

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 500ms;   // between two reports of a waiting node
constexpr auto kProgress = 1ms;  // between two looks for reports

}  // namespace

Reports::Reports(const Topology& topology, Network& network, const NodeControl& control)
    : topology_(topology), network_(network), control_(control) {}

void Reports::exchange(std::uint64_t round, bool asks) {
  const Moment now = network_.now();
  const bool looks = now - looked_ >= kPause;
  if (looks) {
    looked_ = now;
    control_.note_poll(now);
  }
  if (topology_.node_count() == 1 || (!looks && now - received_ < kProgress)) return;
  received_ = now;
  bool asked = asks;
  while (network_.take_report(incoming_)) {
    asked = true;
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at + sizeof(Report) <= incoming_.size(); at += sizeof(Report)) {
      Report report;
      std::memcpy(&report, incoming_.data() + at, sizeof report);
      heard_[static_cast<int>(report.rank)] = {report, now};
    }
  }
  const bool posts = asked && now - posted_ >= kPause;
  // Also without a question: another rank of the node may be the one that asks.
  if (posts || looks) control_.set_awaited(absent_node());
  if (!posts) return;
  posted_ = now;
  if (control_.is_reporter(round, now)) post(now);
}

void Reports::post(Moment now) {
  std::vector<Report> reports;
  for (int l = 0; l < control_.ranks(); ++l)
    reports.push_back({control_.of(l).arrived, static_cast<std::uint32_t>(topology_.own()[static_cast<std::size_t>(l)]),
                       control_.awaited_by(l), control_.state_of(l), control_.hangs(l, now), control_.position_of(l)});
  network_.post_report(std::as_bytes(std::span(reports)));
}

int Reports::absent_node() const {
  const int first = exchange_channel(topology_.first_rail(topology_.local), 0);
  const int end = exchange_channel(topology_.first_rail(topology_.local + 1), 0);
  for (int n = 0; n < topology_.node_count(); ++n) {
    if (!network_.has_come(kMeeting, n)) return n;
    for (int channel = first; channel < end; ++channel)
      if (!network_.has_come(channel, n)) return n;
  }
  return -1;
}

// The nodes that a rank of this node waits for, or one that it has heard from lately.
std::set<int> Reports::awaited_nodes() const {
  std::set<int> nodes;
  for (int l = 0; l < control_.ranks(); ++l) nodes.insert(control_.awaited_by(l));
  for (const auto& [_, heard] : heard_)
    if (network_.now() - heard.at <= kSilence) nodes.insert(heard.report.waits_for);
  return nodes;
}

Missing Reports::missing(std::uint64_t round) const {
  const std::lock_guard lock(mutex_);
  const std::set<int> awaited = awaited_nodes();
  bool may_come = true;
  std::vector<std::string> late, stuck, silent;
  for (int n = 0; n < topology_.node_count(); ++n)
    for (const int r : topology_.nodes[static_cast<std::size_t>(n)]) {
      if (n == topology_.node) continue;
      const auto heard = heard_.find(r);
      if (heard == heard_.end() || network_.now() - heard->second.at > kSilence) {
        if (awaited.contains(n)) silent.push_back(join_text("rank ", topology_.shown(r)));
        continue;
      }
      const Report& report = heard->second.report;
      if (report.round >= round && report.state == ProcessState::kRuns && !report.hangs) continue;
      may_come = may_come && report.state == ProcessState::kRuns && !report.hangs;
      (report.round < round ? late : stuck).push_back(describe_rank(topology_.shown(r), report.state, report.position));
    }
  std::string text;
  for (const std::string& part :
       {say_of(late, "has not called it", "have not called it"), say_of(stuck, kDoesNotContinue, kDoNotContinue),
        say_of(silent,
               "of another node does not answer: it computes, or is stopped, or its node or the network is down",
               "of other nodes do not answer: they compute, or are stopped, or their nodes or the network are down")})
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  return {.text = std::move(text), .may_come = may_come};
}

}  // namespace syncline::comm
