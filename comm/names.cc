#include <map>
#include <mutex>

#include "base/digest.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {
namespace {

struct Names {
  std::mutex mutex;
  std::map<std::uint64_t, std::string> texts;
};

Names& all_names() {
  static Names* const names = new Names;  // never destroyed: errors at the very end of a program use it
  return *names;
}

}  // namespace

std::uint64_t remember_names(std::string_view text) {
  const std::uint64_t digest = digest_bytes(text.data(), text.size());
  Names& names = all_names();
  const std::lock_guard lock(names.mutex);
  names.texts.try_emplace(digest, text);
  return digest;
}

std::string names_of(std::uint64_t digest) {
  Names& names = all_names();
  const std::lock_guard lock(names.mutex);
  const auto found = names.texts.find(digest);
  return found == names.texts.end() ? join_text("names of digest ", std::hex, digest) : found->second;
}

}  // namespace syncline::comm
