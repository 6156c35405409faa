#include "syncline/training/first_rank.h"

namespace syncline::training {

void copy_from_first_rank(comm::Communicator* communicator, std::string_view purpose, void* data, std::size_t bytes) {
  if (communicator == nullptr || communicator->size() == 1) return;
  communicator->wait(
      communicator->broadcast({.names = comm::remember_names(purpose)}, data, static_cast<std::int64_t>(bytes), 0));
}

std::string as_first_rank_says(comm::Communicator* communicator, std::string_view purpose, std::string text) {
  std::uint64_t length = text.size();
  copy_from_first_rank(communicator, purpose, &length, sizeof length);
  text.resize(length);
  copy_from_first_rank(communicator, purpose, text.data(), length);
  return text;
}

std::int32_t greatest_of_all(comm::Communicator* communicator, std::string_view purpose, std::int32_t number) {
  if (communicator == nullptr || communicator->size() == 1) return number;
  communicator->wait(communicator->all_reduce({.names = comm::remember_names(purpose)}, &number, 1, DType::kInt32,
                                              comm::Reduce::kMax));
  return number;
}

}  // namespace syncline::training
