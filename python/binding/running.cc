#include "python/binding/running.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "syncline/error.h"
#include "syncline/session.h"

namespace syncline::python {
namespace {

namespace nb = nanobind;

// During a run our handler replaces Python's, which only records the signal: it sets the flag, then calls Python's.
std::atomic<bool> signal_came = false;
struct sigaction python_action;

void note_signal(int signal) {
  signal_came.store(true, std::memory_order_relaxed);
  python_action.sa_handler(signal);
}

void interrupt() {
  signal_came.store(false, std::memory_order_relaxed);
  throw Interrupted();
}

struct Texts {
  std::mutex mutex;
  std::string kept;
};

Texts& texts() {
  static Texts all;
  return all;
}

// PyGILState_Check is not part of the stable ABI. A thread that has released the GIL keeps its thread state.
thread_local bool has_released_gil = false;

bool is_main_thread() { return getpid() == gettid(); }

bool is_function(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL;
}

}  // namespace

std::mutex& session_mutex() {
  static std::mutex mutex;
  return mutex;
}

WithoutGil::WithoutGil() { has_released_gil = true; }
WithoutGil::~WithoutGil() { has_released_gil = false; }

bool holds_gil() { return !has_released_gil && PyGILState_GetThisThreadState() != nullptr; }

Listening::Listening(bool wanted) {
  Session& session = Session::current();
  if (!wanted || session.strategy() != nullptr || !is_main_thread()) return;
  struct sigaction ours = {};
  ours.sa_handler = note_signal;
  ours.sa_flags = SA_ONSTACK;
  if (sigaction(SIGINT, nullptr, &python_action) != 0 || !is_function(python_action)) return;
  session.set_interruption(&signal_came, interrupt);
  listens_ = sigaction(SIGINT, &ours, nullptr) == 0;
}

Listening::~Listening() {
  if (listens_) sigaction(SIGINT, &python_action, nullptr);
  Session::current().set_interruption(nullptr, {});
}

void run_handlers() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void keep_text(const std::string& text) {
  const std::lock_guard lock(texts().mutex);
  texts().kept += text;
}

void write_texts() {
  std::string text;
  {
    const std::lock_guard lock(texts().mutex);
    text.swap(texts().kept);
  }
  if (text.empty()) return;
  try {
    const nb::object out = nb::module_::import_("sys").attr("stdout");
    out.attr("write")(text);
    out.attr("flush")();
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_Exception)) throw;  // KeyboardInterrupt, SystemExit
    fail<Error>("print_tensor: cannot write to sys.stdout: ", e.what());
  }
}

void write_texts_beside_error() noexcept {
  try {
    write_texts();
  } catch (...) {
  }
}

}  // namespace syncline::python
