// What touches the session, seen from Python. One thread at a time may use it, and meanwhile holds no GIL.
//
// On the main thread of a process that is the whole job, Ctrl-C stops a step between two nodes, before it has changed a
// variable. Python's handlers then run, as ever, with nothing held: they may compute, fork, or change variables. What
// they raise (KeyboardInterrupt) ends the call; otherwise the step is computed anew, since it has changed nothing but
// what print_tensor printed. A rank of several ends its step first, for the others would wait for it.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>
#include <string>

namespace syncline::python {

// Whoever holds it is alone with the session. Nobody waits for it with the GIL in hand.
std::mutex& session_mutex();

// While one lives, its thread has given up the GIL and, where it uses the session or its wire, is alone with them.
class Alone {
 public:
  explicit Alone(bool uses_session = true) : lock_(session_mutex(), std::defer_lock) {
    if (uses_session) lock_.lock();
  }

 private:
  nanobind::gil_scoped_release release_;  // first: nobody waits for the session with the GIL in hand
  std::unique_lock<std::mutex> lock_;
};

// A step that a signal has stopped.
struct Interrupted {};

// Alone, and, if `wanted`, steps listen to signals: they throw Interrupted.
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

// Runs Python's handlers of the signals that have come; throws what they raise. With the GIL.
void run_handlers();

// A text of print_tensor, from a step. It is kept until the session is free again: sys.stdout may be an object of the
// program's, and handlers run while it writes. All of that may compute.
void keep_text(const std::string& text);
// Writes what is kept to sys.stdout, which notebooks and tests replace. With the GIL, without the session. Throws what
// a handler raises, and Error if it cannot be written.
void write_texts();
// The same where an error is on its way already, which is the one to tell.
void write_texts_beside_error() noexcept;

// What `compute` returns, which takes steps, alone with the session; anew if a signal has stopped it, and then to the
// end: signals that come again and again do not keep it from that.
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
