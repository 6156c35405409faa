// AsyncSaver: saves checkpoints while training continues. save() copies the arrays, which is all the caller waits for;
// a thread writes the copy.
//
// At most one save is under way; the next one waits for it. A queue would hold one more copy of the model per save, and
// would grow without bound on a slow disk. Memory use is one copy of the arrays. It is reused from save to save,
// because the kernel takes many times longer to provide new memory than the copy takes.
//
// A failed write keeps the old file (io/files/atomic_file.h), and the next call throws its error on the caller's
// thread. All functions are for the training thread. The writing thread blocks signals.
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
  // Called on the writing thread, once per save. It must not keep the checkpoint or its arrays: the next save reuses
  // their memory. Typically CheckpointFolder::save.
  using Write = std::function<void(const Checkpoint&)>;

  // Throws std::system_error if the thread cannot start.
  explicit AsyncSaver(Write write);
  // Waits for the save under way and drops its error; call wait() first to get the error.
  ~AsyncSaver();
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Allocates and touches the memory for checkpoints of this size, on the writing thread. Call it when training begins:
  // where the kernel provides memory slowly, as on virtual machines, the first save would else stall many times longer
  // than later ones. Does not read the arrays. Throws std::bad_alloc.
  void prepare(const Checkpoint& checkpoint);

  // Waits for the save under way, if any, copies the arrays and returns; the caller may then change them. Throws the
  // error of the previous save after this save has started: catch it, print it, train on. Throws std::bad_alloc if
  // there is no memory for the copy; then no save starts.
  void save(const Checkpoint& checkpoint);

  // Waits for the save under way and throws its error.
  void wait();

 private:
  void wait_for_writer();
  bool make_room(const Checkpoint& checkpoint);
  void copy(const Checkpoint& checkpoint);
  void start(std::function<void()> work);
  void run();

  Write write_;
  Array memory_;                // holds all arrays of copy_
  Checkpoint copy_;             // owned by the writing thread while busy_, else by the caller
  std::function<void()> work_;  // for the writing thread
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false, ending_ = false;
  std::exception_ptr error_;  // of the last save, until it is thrown
  std::thread thread_;        // last: it uses the members above
};

}  // namespace syncline::io
