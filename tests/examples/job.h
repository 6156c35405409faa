// What the tests of the examples share: a job under mpirun and how it ended.
//
// Each rank runs inside a small shell script that writes down the program's process id and exit code, because mpirun
// tells the code of one rank only. Signals are the program's: the script waits on. Not thread-safe: one job at a time
// in a scratch directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/io/scratch.h"

namespace syncline::examples {

struct JobOptions {
  std::string program = SYNCLINE_FASHION_MNIST;
  int ranks = 1;
  std::string layout = {};  // of the ranks, as tests/mpi/launch has it; empty: one that the test's name draws
  std::string arguments = {};
  // Shell text that each rank runs first: it knows $rank and may change its arguments ("$@") and limits.
  std::string prelude = {};
  int seconds = 100;  // the job is ended after this time
};

struct Ended {
  int code = 0;                          // mpirun's; 124 when it was ended after its time
  std::vector<std::optional<int>> exit;  // of each rank's program; nothing if mpirun ended it
  std::vector<std::string> complaints;   // the lines on standard error that are not mpirun's own
  std::string out;                       // standard output of all ranks
  std::string trace;                     // everything, for messages of failed tests
  double seconds = 0;
};

// Runs the job to its end. Its files in `scratch` are out, err, rank.sh, pid.R and exit.R for rank R. Throws IoError if
// no shell can be run.
Ended run_job(const io::Scratch& scratch, const JobOptions& options);

// The process of a rank's program in the job that now runs in `scratch`, if it has begun and not ended.
std::optional<int> process_of(const io::Scratch& scratch, int rank);

// The digests that `--digest` made the ranks print. A test failure if not every rank printed one or if they differ.
std::string common_digest(const Ended& ended, int ranks);

// Nothing was said but that a resumed training has other ranks than the one that saved.
void expect_success(const Ended& ended);
// One clear line that contains `part`, within 10 s a non-zero end of every rank, and no process left behind.
void expect_refusal(const io::Scratch& scratch, const Ended& ended, const std::string& part);

}  // namespace syncline::examples
