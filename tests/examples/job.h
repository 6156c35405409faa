// Runs a job of an example under mpirun and returns how it ended.
//
// Each rank runs inside a small shell script that writes the program's process id and exit code to files, because
// mpirun returns the code of one rank only. The script ignores signals and waits for the program, which handles them.
// Not thread-safe: one job at a time in a scratch directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/io/scratch.h"

namespace syncline::examples {

struct JobOptions {
  std::string program = SYNCLINE_FASHION_MNIST;
  int ranks = 1;
  std::string layout = {};  // of the ranks, for tests/mpi/launch; empty: the test's name selects one
  std::string arguments = {};
  // Shell text that each rank runs first: it may use $rank and change the program's arguments ("$@") and limits.
  std::string prelude = {};
  int seconds = 100;  // the job is ended after this time
};

struct Ended {
  int code = 0;                          // mpirun's; 124 after the time limit
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

// The job exits with 0, and its only complaint may be that a resumed result may not be bitwise identical.
void expect_success(const Ended& ended);
// One clear line, which contains `part`; every rank exits with a non-zero code within 10 s; no process is left.
void expect_refusal(const io::Scratch& scratch, const Ended& ended, const std::string& part);

}  // namespace syncline::examples
