// Access to the session from Python. One thread at a time uses the session, without the GIL.
//
// On the main thread of a single process, Ctrl-C stops a step between two nodes, before the step has changed a
// variable. Python's signal handlers then run without the session and its mutex: they may compute, fork, or change
// variables. An exception of a handler (KeyboardInterrupt) ends the call. Otherwise the step is computed again, because
// it has changed nothing; print_tensor may print twice. One of several ranks ends its step before it runs handlers,
// because the other ranks would wait for it.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>
#include <string>

namespace syncline::python {

// Guards the session. No thread waits for it while holding the GIL.
std::mutex& session_mutex();

// The thread does not hold the GIL during its lifetime.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();

 private:
  nanobind::gil_scoped_release release_;
};

// Whether this thread may call Python: Python started it or calls us from it, and it is not within a WithoutGil.
bool holds_gil();

// During its lifetime the thread does not hold the GIL and, if `uses_session`, holds the session's mutex.
class Alone {
 public:
  explicit Alone(bool uses_session = true) : lock_(session_mutex(), std::defer_lock) {
    if (uses_session) lock_.lock();
  }

 private:
  WithoutGil without_gil_;  // first: no thread waits for the session with the GIL
  std::unique_lock<std::mutex> lock_;
};

// Thrown by a step that a signal has stopped.
struct Interrupted {};

// Alone; if `wanted`, steps throw Interrupted after SIGINT.
class Listening {
 public:
  explicit Listening(bool wanted);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  Alone alone_;
  bool listens_ = false;
};

// Runs Python's handlers of pending signals and throws their exceptions. Needs the GIL.
void run_handlers();

// Stores a text of print_tensor during a step. It is written when the session is free, because sys.stdout may be an
// object of the program, and signal handlers run while it writes; both may compute.
void keep_text(const std::string& text);
// Writes the stored text to sys.stdout, which notebooks and tests replace. Needs the GIL, and the session must be free.
// Throws the exceptions of handlers, and Error if sys.stdout cannot be written.
void write_texts();
// The same, without exceptions of its own: for use while another error is being handled.
void write_texts_beside_error() noexcept;

// Returns compute(), which runs steps while it holds the session. If a signal stops it, it runs once more, without
// interruption, so that repeated signals cannot prevent its end.
template <class Compute>
auto run_alone(const Compute& compute) {
  for (bool listens = true;; listens = false) {
    try {
      auto result = [&] {
        const Listening listening(listens);
        return compute();
      }();
      write_texts();
      return result;
    } catch (const Interrupted&) {
      write_texts();
    } catch (...) {
      write_texts_beside_error();
      throw;
    }
    run_handlers();
  }
}

}  // namespace syncline::python
