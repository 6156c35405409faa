// From "some variable differs" to the element, its values and the ranks. Collective: all ranks call these together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/backend/variable.h"

namespace syncline {

class Distributor;

// One number of each rank, and one text of each. `purpose` is for errors.
inline constexpr std::string_view kAgreement = "agreement of the ranks";
std::vector<std::uint64_t> gather_numbers(Distributor& ranks, std::uint64_t own, std::string_view purpose = kAgreement);
std::vector<std::string> gather_texts(Distributor& ranks, const std::string& own);
bool all_equal(std::span<const std::uint64_t> numbers);
// As many numbers of each rank, one rank's behind the other's; and the places in which not all have the same.
std::vector<std::uint64_t> gather_numbers(Distributor& ranks, std::span<const std::uint64_t> own,
                                          std::string_view purpose = kAgreement);
std::vector<std::size_t> unequal_places(std::span<const std::uint64_t> all, std::size_t of_each);

// Throws DisagreementError: `digests`, one a variable, are not the same on all ranks. The variables' names, dtypes and
// shapes are.
[[noreturn]] void explain_values(Distributor& ranks, std::span<const std::shared_ptr<VariableState>> variables,
                                 std::span<const std::uint64_t> digests, std::uint64_t step);

}  // namespace syncline
