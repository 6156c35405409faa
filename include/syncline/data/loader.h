// Loader: a thread prefetches batches.
//
// At most `prefetch` batches wait; then the thread blocks (back-pressure), so memory stays within LoaderOptions. The
// thread makes the steps in order, epoch after epoch. If the caller asks for a step other than the next (a resumed
// run), the thread restarts there.
//
// An error is thrown by the call that asks for the batch; the caller may ask again. One thread calls all functions.
// After the constructor only the loader's thread reads, so only this thread calls HDF5; it takes turns with other
// threads that use HDF5 (checkpoints). The thread blocks all signals.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "syncline/data/options.h"
#include "syncline/data/source.h"

#pragma GCC visibility push(default)
namespace syncline::io {

class Loader {
 public:
  // Throws as BatchReader does, and std::system_error if the thread cannot be started.
  Loader(std::unique_ptr<Source> source, const LoaderOptions& options);
  // Waits for the batch that is being made.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const std::vector<Column>& columns() const;
  std::int64_t rows() const;
  // Steps of an epoch.
  std::int64_t steps() const;

  // The batch of a step, 0 to steps() - 1, of an epoch from 0; the caller owns it. Throws ValueError for a step out of
  // range, IoError from reading.
  Batch batch(std::int64_t epoch, std::int64_t step);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncline::io
#pragma GCC visibility pop
