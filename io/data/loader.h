// Loader: batches that a thread makes before they are asked for.
//
// At most `prefetch` batches wait; then the thread waits for the caller (back-pressure), so memory stays what
// LoaderOptions says. Steps are made in their order, and after the last one of an epoch those of the next. Who asks for
// another step than the one that follows (a resumed run) makes the thread begin anew there.
//
// An error is thrown by the call that asks for the batch, which may ask again. All calls are for one thread. All
// reading after the constructor is the loader's thread's, so HDF5 is called by it alone; with other threads that use
// HDF5 (checkpoints) it takes turns. The thread takes no signals.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "io/data/batch_reader.h"

namespace syncline::io {

class Loader {
 public:
  // Throws as BatchReader does, std::system_error if no thread can be had.
  Loader(std::unique_ptr<Source> source, const LoaderOptions& options);
  // Waits for the batch that is being made.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const std::vector<Column>& columns() const { return reader_.columns(); }
  std::int64_t rows() const { return reader_.rows(); }
  std::int64_t steps() const { return reader_.steps(); }

  // As BatchReader::read.
  Batch batch(std::int64_t epoch, std::int64_t step);

 private:
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };
  void run();
  Made make(std::int64_t number);

  BatchReader reader_;  // the thread's, once that runs
  const std::int64_t prefetch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Batches are numbered through all epochs. Those that wait are numbers next_ to next_ + made_.size() - 1.
  std::int64_t next_ = 0;
  std::deque<Made> made_;
  std::uint64_t restarts_ = 0;  // a batch that was begun before the last one is thrown away
  bool failed_ = false;         // the last batch that was made; nothing is made behind it
  bool wanted_ = false;         // the first call has come
  bool ending_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace syncline::io
