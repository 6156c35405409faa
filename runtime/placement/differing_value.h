// Finds the first element in which a variable differs between ranks. Functions that take a Strategy are collective.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/backend/variable.h"

namespace syncline {

class Strategy;

// Gathers one number or one text per rank, in rank order. Error messages name `purpose`.
inline constexpr std::string_view kAgreement = "agreement of the ranks";
std::vector<std::uint64_t> gather_numbers(Strategy& ranks, std::uint64_t own, std::string_view purpose = kAgreement);
std::vector<std::string> gather_texts(Strategy& ranks, const std::string& own);
bool all_equal(std::span<const std::uint64_t> numbers);
// Gathers equally many numbers per rank, rank-major; and finds the indices in which the ranks' numbers differ.
std::vector<std::uint64_t> gather_numbers(Strategy& ranks, std::span<const std::uint64_t> own,
                                          std::string_view purpose = kAgreement);
std::vector<std::size_t> unequal_places(std::span<const std::uint64_t> all, std::size_t of_each);

// Throws DisagreementError with the first differing element. `digests` (one per variable) must differ between ranks;
// names, dtypes and shapes must agree.
[[noreturn]] void explain_values(Strategy& ranks, std::span<const std::shared_ptr<VariableState>> variables,
                                 std::span<const std::uint64_t> digests, std::uint64_t step);

}  // namespace syncline
