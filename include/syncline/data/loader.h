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

#include <cstdint>
#include <memory>
#include <vector>

#include "syncline/data/options.h"
#include "syncline/data/source.h"

namespace syncline::io {

class Loader {
 public:
  // Throws as BatchReader does, std::system_error if no thread can be had.
  Loader(std::unique_ptr<Source> source, const LoaderOptions& options);
  // Waits for the batch that is being made.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const std::vector<Column>& columns() const;
  std::int64_t rows() const;
  // Of an epoch.
  std::int64_t steps() const;

  // The batch of a step, 0 to steps() - 1, of an epoch from 0; it is the caller's. Throws ValueError for a step there
  // is not, IoError from reading.
  Batch batch(std::int64_t epoch, std::int64_t step);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncline::io
