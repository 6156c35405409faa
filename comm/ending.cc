#include "syncline/distributed/ending.h"

#include <algorithm>
#include <string>
#include <thread>

#include "syncline/distributed/exit_codes.h"

namespace syncline::comm {
namespace {

// Ranks notice a common cause at slightly different times. mpirun needs some 10 ms to end the ranks of a node, and a
// second more for those of other nodes.
constexpr double kMostApart = 0.3, kLastDelay = 0.9, kOtherNodes = 2;  // seconds
constexpr std::chrono::milliseconds kLauncherDelay{500};

}  // namespace

std::chrono::duration<double> report_delay(const Communicator& wire) {
  const double apart = std::min(kMostApart, kLastDelay / std::max(1, wire.size() - 1));
  return std::chrono::duration<double>(wire.rank() * apart + (wire.rank() > 0 && !wire.one_node() ? kOtherNodes : 0));
}

void end_job(Communicator& wire, std::string_view program, const std::exception& error) {
  std::this_thread::sleep_for(report_delay(wire));
  const std::string who = wire.size() > 1 ? join_text("rank ", wire.rank(), ": ") : std::string();
  const std::string line = join_text(program, ": ", who, error.what(), '\n');
  std::fputs(line.c_str(), stderr);
  if (dynamic_cast<const RankGone*>(&error) != nullptr) std::this_thread::sleep_for(kLauncherDelay);
  wire.abort_job(exit_code_of(error));
  std::abort();  // not reached; the compiler cannot see that a virtual function does not return
}

}  // namespace syncline::comm
