#include "tests/examples/job.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <thread>

namespace syncline::examples {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string rank_file(const io::Scratch& scratch, const char* what, int rank) {
  return scratch.path(fmt::format("{}.{}", what, rank));
}

std::optional<int> number_in(const std::string& path) {
  std::error_code missing;
  if (std::filesystem::file_size(path, missing) == 0 || missing) return {};
  return std::stoi(io::read_file(path));
}

void write_rank_script(const io::Scratch& scratch, const JobOptions& options) {
  io::write_file(scratch.path("rank.sh"), fmt::format(R"(rank=$OMPI_COMM_WORLD_RANK size=$OMPI_COMM_WORLD_SIZE
# Syncline numbers ranks by node; the two nodes of tests/mpi/launch take turns.
test $OMPI_COMM_WORLD_LOCAL_SIZE = $size || rank=$((rank % 2 * ((size + 1) / 2) + rank / 2))
{1}
trap : USR1 USR2 TERM
"$@" &
echo $! > {0}/pid.new.$rank
mv {0}/pid.new.$rank {0}/pid.$rank
while kill -0 $! 2>/dev/null; do wait $!; done
wait $!
code=$?
echo $code > {0}/exit.$rank
exit $code
)",
                                                      scratch.directory(), options.prelude));
}

// The lines that are not Open MPI's, which are between rules of dashes or begin with "[host:process]".
std::vector<std::string> complaints_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  bool banner = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("----------")) banner = !banner;
    else if (!banner && !line.empty() && !std::regex_search(line, std::regex(R"(^\[[^\]]+:\d+\])")))
      lines.push_back(line);
  }
  return lines;
}

// The process that has this number in its own process namespace, and `word` in its command line. A job on namespaces as
// nodes has its own process numbers.
std::optional<int> process_with(int own_number, const std::string& word) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream status(entry.path() / "status"), arguments(entry.path() / "cmdline");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("NSpid:")) continue;
      std::istringstream numbers(line.substr(6));
      const std::vector<int> all{std::istream_iterator<int>(numbers), {}};
      const std::string started{std::istreambuf_iterator<char>(arguments), {}};
      if (!all.empty() && all.back() == own_number && started.find(word) != started.npos) return all.front();
    }
  }
  return {};
}

// The name of the running test, which selects a layout.
std::string name_of_test() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("{}.{}", test->test_suite_name(), test->name());
}

bool ends_soon(int process) {
  for (int i = 0; i < 300; ++i, std::this_thread::sleep_for(10ms))
    if (kill(process, 0) != 0) return true;
  return false;
}

}  // namespace

Ended run_job(const io::Scratch& scratch, const JobOptions& options) {
  for (int rank = 0; rank < options.ranks; ++rank)
    for (const char* what : {"pid", "exit"}) std::filesystem::remove(rank_file(scratch, what, rank));
  write_rank_script(scratch, options);
  const std::string command = fmt::format(
      "timeout -k 1 {1} {2} {3} {4} bash {0}/rank.sh {5} {6} >{0}/out 2>{0}/err </dev/null", scratch.directory(),
      options.seconds, SYNCLINE_LAUNCH, options.layout.empty() ? name_of_test() : options.layout, options.ranks,
      options.program, options.arguments);
  const auto begin = Clock::now();
  const int status = std::system(command.c_str());
  if (status == -1) fail<IoError>("cannot run a shell for: ", command);
  Ended ended;
  ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  ended.out = io::read_file(scratch.path("out"));
  const std::string err = io::read_file(scratch.path("err"));
  ended.complaints = complaints_in(err);
  for (int rank = 0; rank < options.ranks; ++rank) ended.exit.push_back(number_in(rank_file(scratch, "exit", rank)));
  ended.trace =
      fmt::format("{}\nexit code {} after {:.1f} s\n{}{}", command, ended.code, ended.seconds, ended.out, err);
  return ended;
}

std::optional<int> process_of(const io::Scratch& scratch, int rank) {
  const auto own_number = number_in(rank_file(scratch, "pid", rank));
  return own_number ? process_with(*own_number, scratch.directory()) : std::nullopt;
}

std::string common_digest(const Ended& ended, int ranks) {
  const std::regex line(R"(rank (\d+) digest ([0-9a-f]{16}))");
  std::string digest;
  int found = 0;
  for (std::sregex_iterator i(ended.out.begin(), ended.out.end(), line), end; i != end; ++i, ++found) {
    if (found == 0) digest = (*i)[2];
    EXPECT_EQ((*i)[2], digest) << "rank " << (*i)[1] << " differs\n" << ended.trace;
  }
  EXPECT_EQ(found, ranks) << ended.trace;
  return digest;
}

void expect_success(const Ended& ended) {
  EXPECT_EQ(ended.code, 0) << ended.trace;
  for (const std::string& line : ended.complaints)
    EXPECT_NE(line.find("the result may not be bitwise identical"), std::string::npos) << ended.trace;
}

void expect_refusal(const io::Scratch& scratch, const Ended& ended, const std::string& part) {
  EXPECT_NE(ended.code, 0) << ended.trace;
  EXPECT_LT(ended.seconds, 10) << ended.trace;
  EXPECT_EQ(ended.complaints.size(), 1u) << ended.trace;
  if (!ended.complaints.empty()) {
    EXPECT_TRUE(ended.complaints[0].starts_with("fashion_mnist: ")) << ended.trace;
    EXPECT_CONTAINS(ended.complaints[0], part);
  }
  for (std::size_t rank = 0; rank < ended.exit.size(); ++rank) {
    EXPECT_NE(ended.exit[rank].value_or(1), 0) << "rank " << rank << '\n' << ended.trace;
    if (const auto process = process_of(scratch, static_cast<int>(rank))) {
      EXPECT_TRUE(ends_soon(*process)) << "rank " << rank << " still runs\n" << ended.trace;
    }
  }
}

}  // namespace syncline::examples
