// Running: what a step runs in, seen from Python. While one lives, its thread has given up the GIL and is alone with
// the session, which one thread at a time may use. On the main thread of a process that is the whole job, Ctrl-C stops
// the step between two nodes, before it has changed a variable: nanobind's python_error (KeyboardInterrupt) is thrown
// then. A rank of several ends its step first, for the others would wait for it.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>

namespace syncline::python {

// Whoever holds it is alone with the session. Nobody waits for it with the GIL in hand.
std::mutex& session_mutex();

class Running {
 public:
  Running();
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  nanobind::gil_scoped_release release_;  // first: nobody waits for the session with the GIL in hand
  std::lock_guard<std::mutex> lock_;
  bool listens_ = false;
};

}  // namespace syncline::python
