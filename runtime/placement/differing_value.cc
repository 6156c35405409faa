#include "runtime/placement/differing_value.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iomanip>
#include <sstream>

#include "base/convert.h"
#include "ops/kernels/digest.h"
#include "runtime/placement/strategy.h"

namespace syncline {
namespace {

// Binary search with digests. Assumes that different bytes have different digests.
std::int64_t first_differing_element(Strategy& ranks, const Array& value) {
  const auto width = static_cast<std::int64_t>(size_of(value.dtype()));
  std::int64_t begin = 0, end = value.size();
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    const std::uint64_t own =
        kernels::digest(value.raw() + begin * width, static_cast<std::size_t>((middle - begin) * width));
    (all_equal(gather_numbers(ranks, own)) ? begin : end) = middle;
  }
  return begin;
}

// "0.25 (bits 3e800000)"
std::string value_text(DType dtype, std::uint64_t bits) {
  std::ostringstream text;
  with_stored_dtype(dtype, [&]<class T>(T) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    if constexpr (std::is_integral_v<T>) text << static_cast<std::int64_t>(value);
    else if constexpr (sizeof(T) == 8) text << std::setprecision(17) << value;
    else text << std::setprecision(9) << convert<float>(value);
    text << " (bits " << std::hex << std::setfill('0') << std::setw(2 * sizeof value) << bits << ')';
  });
  return text.str();
}

// "[3, 5]"
std::string place_text(const Shape& shape, std::int64_t element) {
  std::string text;
  for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
    text = join_text(element % shape[axis], text.empty() ? "" : ", ", text);
    element /= shape[axis];
  }
  return '[' + text + ']';
}

// "0.25 (bits 3e800000) on ranks 0, 2; 0.5 (bits 3f000000) on rank 1"
std::string who_has_what(DType dtype, const std::vector<std::uint64_t>& values) {
  std::string text;
  for (std::size_t r = 0; r < values.size(); ++r) {
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(r), values[r]) !=
        values.begin() + static_cast<std::ptrdiff_t>(r))
      continue;
    std::string who;
    for (std::size_t other = r; other < values.size(); ++other)
      if (values[other] == values[r]) who += join_text(who.empty() ? "" : ", ", other);
    text += join_text(text.empty() ? "" : "; ", value_text(dtype, values[r]),
                      who.find(',') == who.npos ? " on rank " : " on ranks ", who);
  }
  return text;
}

}  // namespace

bool all_equal(std::span<const std::uint64_t> numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::not_equal_to<>()) == numbers.end();
}

std::vector<std::uint64_t> gather_numbers(Strategy& ranks, std::uint64_t own, std::string_view purpose) {
  return gather_numbers(ranks, std::span(&own, 1), purpose);
}

std::vector<std::uint64_t> gather_numbers(Strategy& ranks, std::span<const std::uint64_t> own,
                                          std::string_view purpose) {
  const auto count = static_cast<std::size_t>(ranks.size());
  std::vector<std::uint64_t> all(count * own.size());
  ranks.gather(purpose, own.data(), all.data(),
               std::vector<std::int64_t>(count, static_cast<std::int64_t>(own.size_bytes())));
  return all;
}

std::vector<std::size_t> unequal_places(std::span<const std::uint64_t> all, std::size_t of_each) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < of_each; ++i)
    for (std::size_t at = i; at < all.size(); at += of_each)
      if (all[at] != all[i] && (places.empty() || places.back() != i)) places.push_back(i);
  return places;
}

std::vector<std::string> gather_texts(Strategy& ranks, const std::string& own) {
  std::vector<std::int64_t> lengths;
  std::int64_t total = 0;
  for (const std::uint64_t length : gather_numbers(ranks, own.size())) {
    lengths.push_back(static_cast<std::int64_t>(length));
    total += lengths.back();
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  ranks.gather(kAgreement, own.data(), all.data(), lengths);
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::int64_t length : lengths) {
    texts.push_back(all.substr(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
  return texts;
}

void explain_values(Strategy& ranks, std::span<const std::shared_ptr<VariableState>> variables,
                    std::span<const std::uint64_t> digests, std::uint64_t step) {
  const std::vector<std::size_t> differing = unequal_places(gather_numbers(ranks, digests), digests.size());
  SYNCLINE_CHECK(!differing.empty());
  const VariableState& state = *variables[differing[0]];
  const Array& value = state.value();
  const std::int64_t element = first_differing_element(ranks, value);
  std::uint64_t bits = 0;
  std::memcpy(&bits, value.raw() + static_cast<std::size_t>(element) * size_of(value.dtype()), size_of(value.dtype()));
  const std::vector<std::uint64_t> values = gather_numbers(ranks, bits);
  const std::string others =
      differing.size() == 1 ? std::string() : join_text(" (", differing.size() - 1, " more variables differ)");
  fail<DisagreementError>("ranks hold different values of variable '", state.name(), "' after step ", step,
                          "; the first difference is at ", place_text(value.shape(), element), " (element ", element,
                          " of ", value.size(), "): ", who_has_what(value.dtype(), values), others,
                          "; the memory of a rank is damaged, or code outside Syncline wrote to the variable");
}

}  // namespace syncline
