#include "tools/profiling/trace_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <unordered_map>
#include <utility>

#include "syncline/error.h"

namespace syncline::tools {
namespace {

using Json = nlohmann::ordered_json;

// The offset to add to a rank's clock, measured once or twice. Between two measurements it changes linearly.
class Clock {
 public:
  void add(const Json& about) {
    const std::int64_t at = about.at("at_ns"), offset = about.at("offset_ns");
    if (measured_ == 0) at_ = at, offset_ = offset;
    else if (at > at_) drift_ = static_cast<double>(offset - offset_) / static_cast<double>(at - at_);
    error_ = std::max(error_, about.at("error_ns").get<std::int64_t>());
    ++measured_;
  }
  std::int64_t align(std::int64_t time) const {
    return time + offset_ + std::llround(drift_ * static_cast<double>(time - at_));
  }
  std::int64_t error() const { return error_; }

 private:
  int measured_ = 0;
  std::int64_t at_ = 0, offset_ = 0, error_ = 0;
  double drift_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : in_(path) {
    file_.path = path;
    if (!in_) fail<IoError>(path, ": cannot read the file");
  }

  TraceFile read() {
    std::string line;
    while (std::getline(in_, line)) {
      ++number_;
      take(line, !in_.eof());
    }
    if (in_.bad()) fail<IoError>(file_.path, ": cannot read the file");
    if (file_.ranks == 0) fail<IoError>(file_.path, ": contains no event; the process ended before it wrote any");
    align();
    return std::move(file_);
  }

 private:
  // Lines end with a comma, which JSON allows only between events.
  void take(std::string line, bool ended) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty() || line == "[" || line == "]") return;
    if (line.back() == ',') line.pop_back();
    const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_discarded() && !ended) return;
    try {
      if (event.is_discarded()) fail<IoError>("it is not JSON");
      take(event);
    } catch (const Json::exception& error) {
      fail<IoError>(file_.path, ":", number_, ": this is not an event of Syncline's timeline: ", error.what());
    } catch (const IoError& error) {
      fail<IoError>(file_.path, ":", number_, ": this is not an event of Syncline's timeline: ", error.what());
    }
  }

  void take(Json event) {
    const std::string kind = event.at("ph"), name = event.at("name");
    if (file_.ranks == 0) {
      if (name != "syncline" || event.at("args").at("format") != 1)
        fail<IoError>("the file does not begin as a timeline");
      begin_file(event.at("args"));
    } else if (kind == "M") {
      describe(name, event);
    } else if (kind == "X") {
      begun_ = begin_ + std::llround(event.at("ts").get<double>() * 1e3);
      const std::int64_t duration = std::llround(event.at("dur").get<double>() * 1e3);
      count(name, event.at("cat"), event.at("args"), duration);
      event.erase("ts");
      event.erase("dur");
      file_.events.push_back({begun_, begun_ + duration, event.dump().substr(1)});
    } else {
      fail<IoError>("its kind is ", kind);
    }
  }

  void begin_file(const Json& about) {
    file_.rank = about.at("rank");
    file_.ranks = about.at("ranks");
    file_.job = about.at("job");
    file_.host = about.at("host");
    file_.process = about.at("process");
    begin_ = about.at("begin_ns");
    clock_.add(about);
  }

  void describe(const std::string& name, const Json& event) {
    const Json& about = event.at("args");
    if (name == "clock") clock_.add(about);
    else if (name == "summary") file_.summary = about;
    else if (name == "end") file_.complete = true, file_.left_out = about.at("left_out");
    else file_.descriptions.push_back(event.dump());
  }

  // The events of a collective follow each other: the transfer, the wait for ranks on the wire, the wait in the
  // program.
  void count(const std::string& name, const std::string& category, const Json& args, std::int64_t duration) {
    TracedTimes& times = file_.times;
    if (category == "step") {
      ++times.steps;
      times.in_steps += duration;
    } else if (category == "transfer") {
      times.transfers += duration;
      std::string collective = args.dump();
      collective += join_text(" ", ++seen_[collective]);
      file_.waits.push_back({.collective = std::move(collective), .arrived = begun_});
    } else if (category == "arrival" && !file_.waits.empty()) {
      file_.waits.back().arrived = begun_;
    } else if (category == "wait" && name == "wait") {
      times.waited += duration;
    } else if (category == "wait" && name == "for the transfer") {
      times.waited_for_transfers += duration;
    } else if (category == "wait" && !file_.waits.empty()) {
      file_.waits.back().late = duration;
      if (args.contains("rank")) file_.waits.back().last = args.at("rank");
    }
  }

  void align() {
    for (TraceEvent& event : file_.events) {
      event.begin = clock_.align(event.begin);
      event.end = clock_.align(event.end);
    }
    for (TracedWait& wait : file_.waits) wait.arrived = clock_.align(wait.arrived);
    file_.clock_error = clock_.error();
  }

  std::ifstream in_;
  TraceFile file_;
  std::int64_t number_ = 0;             // of the current line
  std::int64_t begin_ = 0, begun_ = 0;  // of the file and of the current event, on the rank's clock
  Clock clock_;
  std::unordered_map<std::string, std::int64_t> seen_;
};

}  // namespace

TraceFile read_trace_file(const std::string& path) { return Reader(path).read(); }

}  // namespace syncline::tools
