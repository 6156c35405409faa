#include "runtime/training/status.h"

#include <fmt/chrono.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "io/files/atomic_file.h"

namespace syncline::training {

void write_status(const std::string& folder, const Status& status) {
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
  const std::string bytes = text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  const std::string path = folder + "/status.json";
  try {
    io::write_file_durably(path, std::as_bytes(std::span(bytes)));
  } catch (const io::DiskFullError&) {
    if (!std::filesystem::exists(path)) throw;
    io::replace_text_in_place(path, bytes);
  }
}

std::optional<Status> read_status(const std::string& folder) {
  std::ifstream file(folder + "/status.json");
  const auto text = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!text.is_object() || !text.contains("state") || !text["state"].is_string()) return {};
  Status status;
  status.state = text["state"];
  if (text.contains("exit_code") && text["exit_code"].is_number_integer()) status.exit_code = text["exit_code"];
  if (text.contains("reason") && text["reason"].is_string()) status.reason = text["reason"];
  return status;
}

}  // namespace syncline::training
