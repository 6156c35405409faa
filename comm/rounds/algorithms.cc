#include "comm/rounds/algorithms.h"

#include "base/digest.h"

namespace syncline::comm {

Algorithm choose(AlgorithmRows rows, int nodes, std::int64_t bytes) {
  for (const AlgorithmTable::Row& row : rows)
    if (nodes <= row.nodes && bytes <= row.bytes) return row.algorithm;
  return Algorithm::kHalves;
}

bool may_choose(AlgorithmRows rows, int nodes, Algorithm algorithm) {
  // The choice changes only behind the largest messages of a row.
  if (choose(rows, nodes, 0) == algorithm) return true;
  for (const AlgorithmTable::Row& row : rows)
    if (row.bytes < AlgorithmTable::kAnyBytes && choose(rows, nodes, row.bytes + 1) == algorithm) return true;
  return false;
}

std::uint64_t digest_of(const AlgorithmTable& table) {
  std::uint64_t digest = kEmptyDigest;
  const auto add = [&](std::int64_t number) { digest = digest_bytes(&number, sizeof number, digest); };
  for (const auto* rows : {&table.meetings, &table.sums, &table.gathers}) {
    add(std::ssize(*rows));
    for (const AlgorithmTable::Row& row : *rows) {
      add(row.nodes);
      add(row.bytes);
      add(static_cast<std::int64_t>(row.algorithm));
    }
  }
  return digest;
}

}  // namespace syncline::comm
