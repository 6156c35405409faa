// Times checkpoints and their lower bounds: the stall of a background save against a copy in memory, a save against
// write(2) of equally many bytes in blocks of 1 MiB and fsync (like `dd conv=fsync`), and a load against read(2) into
// new memory. A round does each once, in turn. Prints one JSON line with medians over the rounds, "syncline_..." and
// "plain_...", in milliseconds.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "io/checkpoint/async_saver.h"
#include "syncline/checkpoint/checkpoint.h"
#include "syncline/error.h"

namespace {
using namespace syncline;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBlock = 1 << 20;

io::Checkpoint model_of(std::int64_t mebibytes) {
  io::Checkpoint checkpoint;
  for (std::int64_t i = 0; i < mebibytes; i += 4) {
    Array value(DType::kFloat32, {1024, 1024});
    for (std::int64_t k = 0; k < value.size(); ++k) value.data<float>()[k] = static_cast<float>(i + k % 1000);
    const std::string name = join_text("dense_", i / 4);
    checkpoint.layers.push_back({name, {{name + "/kernel:0", value}}});
  }
  return checkpoint;
}

Array joined(const io::Checkpoint& checkpoint) {
  std::size_t bytes = 0;
  for (const io::Layer& layer : checkpoint.layers) bytes += layer.weights[0].value.bytes();
  return Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(bytes)});
}

void copy(const io::Checkpoint& from, Array& to) {
  std::byte* place = to.raw();
  for (const io::Layer& layer : from.layers) {
    const Array& value = layer.weights[0].value;
    std::memcpy(place, value.raw(), value.bytes());
    place += value.bytes();
  }
}

void write_plainly(const std::string& path, const Array& bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) fail<IoError>("cannot write ", path);
  bool whole = true;
  for (std::size_t at = 0; at < bytes.bytes(); at += kBlock) {
    const std::size_t size = std::min<std::size_t>(kBlock, bytes.bytes() - at);
    whole = whole && ::write(file, bytes.raw() + at, size) == static_cast<ssize_t>(size);
  }
  whole = whole && ::fsync(file) == 0;
  if (::close(file) != 0 || !whole) fail<IoError>("cannot write ", path);
}

void read_plainly(const std::string& path, Array& bytes) {
  const int file = ::open(path.c_str(), O_RDONLY);
  std::size_t at = 0;
  for (ssize_t got = 1; file >= 0 && got > 0 && at < bytes.bytes(); at += static_cast<std::size_t>(got))
    got = std::max<ssize_t>(::read(file, bytes.raw() + at, std::min<std::size_t>(kBlock, bytes.bytes() - at)), 0);
  if (file < 0 || ::close(file) != 0 || at != bytes.bytes()) fail<IoError>("cannot read ", path);
}

class Times {
 public:
  template <class Action>
  void time(const std::string& name, Action action) {
    const Clock::time_point begin = Clock::now();
    action();
    seconds_[name].push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  double median(const std::string& name) const {
    std::vector<double> sorted = seconds_.at(name);
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  const auto& all() const { return seconds_; }

 private:
  std::map<std::string, std::vector<double>> seconds_;
};

Times measure(const std::string& directory, std::int64_t mebibytes, int rounds) {
  const io::Checkpoint checkpoint = model_of(mebibytes);
  Array warm = joined(checkpoint);
  copy(checkpoint, warm);
  const std::string path = directory + "/checkpoint_bench.h5", plain = directory + "/checkpoint_bench.bytes";
  io::AsyncSaver saver([&](const io::Checkpoint& copied) { io::save_checkpoint(path, copied); });
  Times times;
  saver.prepare(checkpoint);
  saver.wait();
  times.time("syncline_first_stall", [&] { saver.save(checkpoint); });
  saver.wait();
  for (int round = 0; round < rounds; ++round) {
    times.time("plain_stall", [&] { copy(checkpoint, warm); });
    times.time("syncline_stall", [&] { saver.save(checkpoint); });
    saver.wait();
    times.time("plain_save", [&] { write_plainly(plain, warm); });
    times.time("syncline_save", [&] { io::save_checkpoint(path, checkpoint); });
    times.time("plain_load", [&] {
      Array fresh = joined(checkpoint);
      read_plainly(plain, fresh);
    });
    times.time("syncline_load", [&] { io::load_checkpoint(path); });
  }
  ::unlink(path.c_str());
  ::unlink(plain.c_str());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Times saving and loading of a checkpoint beside plain copies, writes and reads.");
  std::string directory = ".";
  std::int64_t mebibytes = 256;
  int rounds = 5;
  program.add_option("--directory", directory, "Where files are written and removed again");
  program.add_option("--mebibytes", mebibytes, "Size of the model")->check(CLI::Range(4, 16384));
  program.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  bool json = true;
  program.add_flag("--json", json, "The only form of output; accepted for symmetry");
  CLI11_PARSE(program, argc, argv);
  try {
    const Times times = measure(directory, mebibytes, rounds);
    nlohmann::ordered_json line{{"bytes", mebibytes * kBlock}};
    for (const auto& [name, seconds] : times.all()) line[name + "_ms"] = 1000 * times.median(name);
    std::cout << line.dump() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "checkpoint_bench: " << error.what() << std::endl;
    return 1;
  }
}
