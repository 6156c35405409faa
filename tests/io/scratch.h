// Helpers of the io tests: temporary directories, small files, messages of expected errors.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/error.h"

namespace syncline::io {

// A new directory. The destructor removes it with its contents.
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
// The Python that has h5py and NumPy: SYNCLINE_TEST_PYTHON or python3.
std::string python();
bool has_h5py();

// The message of the E that `action` throws. The test fails if it throws none.
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
// Messages are shown to users as they are, so each must be one line.
#define EXPECT_ONE_LINE(text) EXPECT_EQ(std::string_view(text).find('\n'), std::string_view::npos) << (text)

// A small model with a layer without weights, optimizer weights and a state.
Checkpoint small_checkpoint();
// Compares all arrays (name, dtype, shape, bytes) and the fields of the heads.
void expect_equal(const Checkpoint& a, const Checkpoint& b);

}  // namespace syncline::io
