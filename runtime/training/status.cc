#include "runtime/training/status.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "io/files/atomic_file.h"
#include "io/files/descriptor.h"

namespace syncline::training {

namespace {

using namespace std::chrono_literals;

std::string path_in(const std::string& folder) { return folder + "/status.json"; }

// Locks the folder. Another rank holds the lock for one small write, which may wait for a large checkpoint's; one that
// holds it longer has a disk that hangs.
class FolderTurn {
 public:
  explicit FolderTurn(const std::string& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    const auto until = std::chrono::steady_clock::now() + 1min;
    while (io::try_lock(folder_.get(), LOCK_EX) == io::FileLock::kHeldByAnother &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
  }
  FolderTurn(const FolderTurn&) = delete;
  FolderTurn& operator=(const FolderTurn&) = delete;
  // A forked process may have a copy of the descriptor, which would keep the lock.
  ~FolderTurn() { ::flock(folder_.get(), LOCK_UN); }

 private:
  const io::Descriptor folder_;
};

std::string text_of(const Status& status) {
  nlohmann::ordered_json text;
  text["state"] = status.state;
  text["exit_code"] = nullptr;
  if (status.exit_code) text["exit_code"] = *status.exit_code;
  text["epoch"] = status.counts.epoch;
  text["step"] = status.counts.step;
  text["global_step"] = status.counts.global_step;
  text["checkpoint"] = nullptr;
  if (!status.checkpoint.empty()) text["checkpoint"] = std::filesystem::path(status.checkpoint).filename().string();
  text["ranks"] = status.ranks;
  text["reason"] = status.reason;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  text["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now);
  return text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void replace(const std::string& folder, const Status& status) {
  const std::string path = path_in(folder), text = text_of(status);
  try {
    io::write_file_durably(path, std::as_bytes(std::span(text)));
  } catch (const io::DiskFullError&) {
    if (!std::filesystem::exists(path)) throw;
    io::replace_text_in_place(path, text);
  }
}

void keep_failure(const std::string& folder, Status& status) {
  std::ifstream file(path_in(folder));
  const auto text = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!text.is_object() || text.value("state", nlohmann::json()) != "failed") return;
  status.state = "failed";
  status.exit_code.reset();
  if (const auto code = text.find("exit_code"); code != text.end() && code->is_number_integer())
    status.exit_code = *code;
  if (const auto reason = text.find("reason"); reason != text.end() && reason->is_string()) status.reason = *reason;
}

}  // namespace

void begin_status(const std::string& folder, const Status& status) {
  const FolderTurn turn(folder);
  replace(folder, status);
}

void write_status(const std::string& folder, Status status) {
  const FolderTurn turn(folder);
  keep_failure(folder, status);
  replace(folder, status);
}

bool has_status(const std::string& folder) { return std::filesystem::exists(path_in(folder)); }

}  // namespace syncline::training
