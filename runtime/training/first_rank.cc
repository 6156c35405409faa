#include "syncline/training/first_rank.h"

namespace syncline::training {

void copy_from_first_rank(comm::Communicator* wire, std::string_view purpose, void* data, std::size_t bytes) {
  if (wire == nullptr || wire->size() == 1) return;
  wire->wait(wire->broadcast({.names = comm::remember_names(purpose)}, data, static_cast<std::int64_t>(bytes), 0));
}

std::string as_first_rank_says(comm::Communicator* wire, std::string_view purpose, std::string text) {
  std::uint64_t length = text.size();
  copy_from_first_rank(wire, purpose, &length, sizeof length);
  text.resize(length);
  copy_from_first_rank(wire, purpose, text.data(), length);
  return text;
}

std::int32_t greatest_of_all(comm::Communicator* wire, std::string_view purpose, std::int32_t number) {
  if (wire == nullptr || wire->size() == 1) return number;
  wire->wait(wire->all_reduce({.names = comm::remember_names(purpose)}, &number, 1, DType::kInt32, comm::Reduce::kMax));
  return number;
}

}  // namespace syncline::training
