// corpus_main PATH...: passes each file, and each file of each directory, to the target, like libFuzzer's main with
// files. The target must read files named whole... without an error.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/reading.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
    if (!fs::is_directory(argument)) paths.emplace_back(argument);
    else
      for (const auto& entry : fs::directory_iterator(argument)) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    std::cerr << argv[0] << ": no files to read; name them or their directory\n";
    return 2;
  }
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
      std::cerr << argv[0] << ": cannot read '" << path.string() << "'\n";
      return 2;
    }
    std::cerr << path.string() << '\n';
    syncline::io::last_refusal.clear();
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (path.filename().string().starts_with("whole") && !syncline::io::last_refusal.empty()) {
      std::cerr << "refused: " << syncline::io::last_refusal << '\n';
      return 1;
    }
  }
}
