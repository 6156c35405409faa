// Saving while training goes on: the arrays are copied when save is called, which is all the caller waits for, and a
// thread writes the copy.
//
// At most one save is under way. Another one waits for it: a queue would hold one more copy of the model for each save
// in it, and where the disk is slower than the saves come it would only grow. So memory is that of the arrays, once,
// and it is kept from save to save, because new memory takes the kernel many times as long as the copy.
//
// A failed write harms nothing (io/files/durable_file.h) and does not end anything: its error is thrown, on the
// caller's thread, by the next call. All functions are for one thread, the one that trains. The writing thread takes no
// signals.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

class AsyncSaver {
 public:
  // Called on the writing thread, once for each save. It must not keep the checkpoint, nor arrays of it: their memory
  // is that of the next one. Typically CheckpointFolder::save.
  using Write = std::function<void(const Checkpoint&)>;

  // Throws std::system_error if no thread can be had.
  explicit AsyncSaver(Write write);
  // Waits for the save under way. Its error is lost; call wait() before, to hear of it.
  ~AsyncSaver();
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Gets the memory for checkpoints of this size ready, on the writing thread: where memory is handed out slowly, as on
  // virtual machines, it is the first save that else waits for it, for many times the length of a later stall. Call it
  // when training begins. The arrays are not read. Throws std::bad_alloc.
  void prepare(const Checkpoint& checkpoint);

  // Waits for the save under way, if any, copies the arrays and returns. Then the caller may change them. Throws what
  // the save before failed with, after this one has been started: catch it, print it, train on. Throws std::bad_alloc
  // if there is no memory for the copy; nothing is started then.
  void save(const Checkpoint& checkpoint);

  // Waits for the save under way and throws what it failed with.
  void wait();

 private:
  void wait_for_writer();
  bool make_room(const Checkpoint& checkpoint);
  void copy(const Checkpoint& checkpoint);
  void start(std::function<void()> work);
  void run();

  Write write_;
  Array memory_;                // of all arrays of copy_
  Checkpoint copy_;             // the writing thread's while busy_, the caller's otherwise
  std::function<void()> work_;  // what the writing thread is to do
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false, ending_ = false;
  std::exception_ptr error_;  // of the last save, until it is thrown
  std::thread thread_;        // last: it uses all the others
};

}  // namespace syncline::io
