#include "tests/comm/nccl_stand_in/state.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace stand_in {
namespace {

Behaviour behaviour_of_environment() {
  Behaviour b;
  const char* text = std::getenv("STAND_IN");
  std::istringstream words(text == nullptr ? "" : text);
  const std::map<std::string, int*> numbers{{"version", &b.version},
                                            {"devices", &b.devices},
                                            {"fail_at", &b.fail_at},
                                            {"fail_code", &b.fail_code},
                                            {"delay_us", &b.delay_us},
                                            {"in_progress", &b.in_progress},
                                            {"remote_error_at", &b.remote_error_at}};
  const std::map<std::string, bool*> switches{
      {"one_gpu", &b.one_gpu}, {"stuck", &b.stuck}, {"abort_hangs", &b.abort_hangs}};
  for (std::string word; words >> word;) {
    const std::size_t at = word.find('=');
    const std::string name = word.substr(0, at), value = at == word.npos ? "" : word.substr(at + 1);
    if (numbers.contains(name)) *numbers.at(name) = std::atoi(value.c_str());
    else if (switches.contains(name)) *switches.at(name) = value == "1";
    else if (name == "fail") b.fail = value;
    else if (name == "hang") b.hang = value;
    else {
      std::fprintf(stderr, "stand-in: STAND_IN: what is '%s'?\n", word.c_str());
      std::_Exit(70);
    }
  }
  return b;
}

// Reports violations and leaks at the end of the process.
struct Watch {
  State state;
  Watch() { state.behaviour = behaviour_of_environment(); }
  ~Watch() {
    std::vector<std::string> problems = violations();
    for (const std::string& what : alive()) problems.push_back("not freed: " + what);
    for (const std::string& problem : problems) std::fprintf(stderr, "stand-in: %s\n", problem.c_str());
    if (!problems.empty()) std::_Exit(70);
  }
};

Watch& watch() {
  static Watch the_watch;
  return the_watch;
}

}  // namespace

State& state() { return watch().state; }

void start_over(const Behaviour& behaviour) {
  std::vector<std::string> left = alive();
  const Lock lock(state().mutex);
  State& s = state();
  s.behaviour = behaviour;
  s.calls.clear();
  s.violations.clear();
  for (const std::string& what : left) violate("still alive at the start: " + what);
  if (left.empty()) {
    s.blocks.clear();
    s.events.clear();
    s.streams.clear();
  }
  s.aborts_may_end = false;
}

void release_aborts() {
  const Lock lock(state().mutex);
  state().aborts_may_end = true;
  state().changed.notify_all();
}

int calls_of(const std::string& call) {
  const Lock lock(state().mutex);
  return state().calls[call];
}

std::vector<std::string> violations() {
  const Lock lock(state().mutex);
  return state().violations;
}

std::vector<std::string> alive() {
  const Lock lock(state().mutex);
  const State& s = state();
  const auto host = std::count_if(s.blocks.begin(), s.blocks.end(),
                                  [](const auto& block) { return !block->freed && !block->on_device; });
  const auto device = std::count_if(s.blocks.begin(), s.blocks.end(),
                                    [](const auto& block) { return !block->freed && block->on_device; });
  std::vector<std::string> result = s.live_comms;
  const auto tell = [&](const char* what, auto count) {
    if (count > 0) result.push_back(what + std::to_string(count));
  };
  tell("cudaHostAlloc: ", host);
  tell("cudaMalloc: ", device);
  tell("events: ",
       std::count_if(s.events.begin(), s.events.end(), [](const auto& event) { return !event->destroyed; }));
  tell("streams: ",
       std::count_if(s.streams.begin(), s.streams.end(), [](const auto& stream) { return !stream->ended; }));
  return result;
}

void violate(const std::string& what) { state().violations.push_back(what); }

bool has_to_fail(const char* call) {
  State& s = state();
  const int count = ++s.calls[call];
  return s.behaviour.fail == call && count == s.behaviour.fail_at;
}

bool has_to_hang(const char* call) {
  State& s = state();
  return s.behaviour.hang == call && s.calls[call] >= s.behaviour.fail_at;
}

Block* find_block(const char* call, const void* begin, std::size_t bytes, bool on_device) {
  const auto* first = static_cast<const std::byte*>(begin);
  const char* where = on_device ? "device memory" : "pinned memory";
  for (const auto& block : state().blocks) {
    if (block->on_device != on_device || first < block->begin) continue;
    if (first + bytes > block->begin + block->bytes) continue;
    if (block->freed) violate(std::string(call) + ": freed " + where);
    return block.get();
  }
  violate(std::string(call) + ": no " + where);
  return nullptr;
}

bool usable(const char* call, CUstream_st* stream) {
  const auto& streams = state().streams;
  const bool known = std::any_of(streams.begin(), streams.end(), [&](const auto& s) { return s.get() == stream; });
  if (!known || stream->destroyed) violate(std::string(call) + ": no stream");
  else if (stream->awaits_sum) violate(std::string(call) + ": before NCCL has put the sum on the stream");
  else if (stream->device != selected_device()) violate(std::string(call) + ": another device is selected");
  else return true;
  return false;
}

void enqueue(CUstream_st* stream, std::function<void()> work) {
  stream->queue.push_back(std::move(work));
  state().changed.notify_all();
}

bool idle(const CUstream_st& stream) { return stream.queue.empty() && !stream.busy; }

}  // namespace stand_in
