#include <unistd.h>

#include <memory>
#include <utility>

#include "comm/shared/node.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

class HeapWindow : public Window {
 public:
  HeapWindow(std::shared_ptr<std::vector<std::byte>> memory, int ranks, std::size_t bytes_a_rank)
      : memory_(std::move(memory)) {
    void* begin = memory_->data();
    std::size_t space = memory_->size();
    SYNCLINE_CHECK(std::align(page_size(), static_cast<std::size_t>(ranks) * in_pages(bytes_a_rank), begin, space) !=
                   nullptr);
    for (int l = 0; l < ranks; ++l)
      parts_.push_back(static_cast<std::byte*>(begin) + static_cast<std::size_t>(l) * in_pages(bytes_a_rank));
  }

 private:
  const std::shared_ptr<std::vector<std::byte>> memory_;
};

}  // namespace

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t heap_window_bytes(int ranks, std::size_t bytes_a_rank) {
  return static_cast<std::size_t>(ranks) * in_pages(bytes_a_rank) + page_size();
}

std::unique_ptr<Window> make_heap_window(std::shared_ptr<std::vector<std::byte>> memory, int ranks,
                                         std::size_t bytes_a_rank) {
  return std::make_unique<HeapWindow>(std::move(memory), ranks, bytes_a_rank);
}

std::unique_ptr<Window> make_private_window(std::size_t bytes) {
  return make_heap_window(std::make_shared<std::vector<std::byte>>(heap_window_bytes(1, bytes)), 1, bytes);
}

}  // namespace syncline::comm
