// What the tests of io share: a directory of their own, small files, the text of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/error.h"

namespace syncline::io {

// A fresh directory that is removed with everything in it.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& directory() const { return directory_; }
  std::string path(std::string_view name) const { return directory_ + "/" + std::string(name); }
  // The names of the files in it, sorted.
  std::vector<std::string> files() const;

 private:
  std::string directory_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

// Runs a shell command with a time limit of 60 seconds; returns what it printed (with stderr) and its exit status.
struct Outcome {
  int status = 0;
  std::string output;
};
Outcome run_shell(const std::string& command);
bool has_program(const std::string& name);
// The Python that Debian's packages (h5py, NumPy) are for.
std::string python();
bool has_h5py();

// The message of the E that `action` throws; a test failure if it throws none.
template <class E = IoError, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no exception was thrown";
  return "";
}

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string_view(text).find(part), std::string_view::npos) << "the text is: " << (text)
// One line that can be shown to a user as it is.
#define EXPECT_ONE_LINE(text) EXPECT_EQ(std::string_view(text).find('\n'), std::string_view::npos) << (text)

// A small model with a layer without weights, optimizer weights and a state.
Checkpoint small_checkpoint();
// Dtypes, shapes, bytes, names and state.
void expect_equal(const Checkpoint& a, const Checkpoint& b);

}  // namespace syncline::io
