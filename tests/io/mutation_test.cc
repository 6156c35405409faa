// Reads ten thousand damaged files of each format, made from a fixed seed. Each is read or refused with an Error,
// within limits on memory and time.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "io/arrays/array_file.h"
#include "io/arrays/npz.h"
#include "io/arrays/safetensors.h"
#include "syncline/checkpoint/checkpoint.h"
#include "tests/io/memory_limit.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

constexpr int kFiles = 10000, kSeconds = 100;
constexpr rlim_t kMemory = rlim_t{1} << 30;

// Truncates the bytes, inserts a copy of a piece, erases a piece, or changes up to eight bytes.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t count) { return random() % std::max<std::size_t>(count, 1); };
  switch (random() % 8) {
    case 0: bytes.resize(below(bytes.size())); break;
    case 1: bytes.insert(below(bytes.size()), bytes.substr(below(bytes.size()), below(64))); break;
    case 2: bytes.erase(below(bytes.size()), below(16)); break;
    default:
      for (auto changes = 1 + below(8); changes > 0 && !bytes.empty(); --changes) {
        constexpr std::array<int, 4> kExtremes{0, 1, 127, 255};
        char& byte = bytes[below(bytes.size())];
        byte = static_cast<char>(random() % 2 == 0 ? static_cast<int>(random() % 256) : kExtremes[random() % 4]);
      }
  }
  return bytes;
}

// Exits with 0 if every file was read or refused. Other exceptions exit with 8; a crash ends the process by a signal.
[[noreturn]] void read_all(const std::string& path, const std::string& bytes) {
  const rlimit memory{kMemory, kMemory};
  if (kLimitMemory && ::setrlimit(RLIMIT_AS, &memory) != 0) std::_Exit(9);
  ::alarm(kSeconds);
  std::mt19937 random(5);
  for (int i = 0; i < kFiles; ++i) {
    ::unlink(path.c_str());  // file systems flush a file at once if it is truncated and rewritten
    write_file(path, mutated(bytes, random));
    try {
      const auto file = open_array_file(path);
      for (std::size_t k = 0; k < file->entries().size(); ++k) file->read(k);
    } catch (const Error&) {
    } catch (const std::exception& error) {
      std::fprintf(stderr, "file %d: %s\n", i, error.what());
      std::_Exit(8);
    }
  }
  std::_Exit(0);
}

class Mutation : public testing::TestWithParam<std::string> {};

TEST_P(Mutation, IsReadOrRefused) {
  const Scratch scratch;
  const std::string path = scratch.path("a." + GetParam());
  save_checkpoint(scratch.path("a.h5"), small_checkpoint());
  if (GetParam() != "h5") {
    const auto file = open_array_file(scratch.path("a.h5"));
    std::vector<NamedArray> arrays;
    for (std::size_t i = 0; i < file->entries().size(); ++i) arrays.push_back({file->entries()[i].name, file->read(i)});
    const auto image_of = GetParam() == "npz" ? serialize_npz : serialize_safetensors;
    const Array image = image_of(path, arrays, file->outline());
    write_file(path, {reinterpret_cast<const char*>(image.raw()), image.bytes()});
  }
  const std::string bytes = read_file(path);
  ASSERT_EQ(open_array_file(path)->entries().size(), 6u);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) read_all(path, bytes);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(, Mutation, testing::Values("h5", "npz", "safetensors"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace syncline::io
