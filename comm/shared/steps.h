// Steps: the work of a collective as a coroutine that never blocks. Where it has to wait, or has done enough for one
// step, it returns to its driver, who calls advance() again and again.
//
//     Steps move(Channel& channel) {
//       co_await until([&] { return channel.has_come(); });
//       ...
//     }
//     for (Steps steps = move(channel); !steps.advance();) ...
//
// The owner may destroy it at any wait. One thread at a time. An exception leaves the outermost advance(), which must
// not be called again: a coroutine does not see the exceptions of one that it awaits.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace syncline::comm {

// What a step reads before it returns to its driver: about a millisecond's work.
inline constexpr std::int64_t kStepBytes = std::int64_t{8} << 20;

class Steps {
 public:
  struct promise_type {
    Steps get_return_object() { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
    // Memory of ended coroutines serves later ones, so that a collective allocates nothing.
    void* operator new(std::size_t size) { return memory().take(size); }
    void operator delete(void* frame, std::size_t size) { memory().give(frame, size); }

    bool (*holds)(void* condition) = nullptr;  // null: it waits for nothing
    void* condition = nullptr;
  };
  using Handle = std::coroutine_handle<promise_type>;

  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Steps& operator=(Steps&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  // Goes on to the next wait. True at the end.
  bool advance() {
    promise_type& promise = handle_.promise();
    if (promise.holds != nullptr && !promise.holds(promise.condition)) return false;
    promise.holds = nullptr;
    ++resumed_;
    if (!handle_.done()) handle_.resume();
    return handle_.done();
  }
  // A count that grows when a wait of this thread's steps ends.
  static std::uint64_t resumed() { return resumed_; }

 private:
  // One for all threads: a coroutine may end on another thread than it began on.
  class Memory {
   public:
    void* take(std::size_t size) {
      const std::lock_guard hold(mutex_);
      const auto found = std::ranges::find(free_, size, &std::pair<std::size_t, void*>::first);
      if (found == free_.end()) return ::operator new(size);
      void* const frame = found->second;
      *found = free_.back();
      free_.pop_back();
      return frame;
    }
    void give(void* frame, std::size_t size) {
      const std::lock_guard hold(mutex_);
      free_.emplace_back(size, frame);
    }

   private:
    std::mutex mutex_;
    std::vector<std::pair<std::size_t, void*>> free_;  // frames, with their sizes
  };
  static Memory& memory() {
    static Memory& memory = *new Memory;  // never destroyed: static communicators end late
    return memory;
  }

  explicit Steps(Handle handle) : handle_(handle) {}

  static inline thread_local std::uint64_t resumed_ = 0;
  Handle handle_;
};

// What a coroutine of steps awaits: the condition, a function without arguments, holds.
template <class Condition>
class Until {
 public:
  explicit Until(Condition condition) : condition_(std::move(condition)) {}
  bool await_ready() { return condition_(); }
  void await_suspend(Steps::Handle handle) {
    handle.promise().condition = &condition_;
    handle.promise().holds = [](void* condition) { return (*static_cast<Condition*>(condition))(); };
  }
  void await_resume() {}

 private:
  Condition condition_;
};

template <class Condition>
Until<Condition> until(Condition condition) {
  return Until<Condition>(std::move(condition));
}

// A coroutine of steps may await another one.
inline auto operator co_await(Steps steps) {
  return until([steps = std::move(steps)]() mutable { return steps.advance(); });
}

}  // namespace syncline::comm
