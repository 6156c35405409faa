// Work: what a call of a kernel takes at least, for profiles.
#pragma once

#include <algorithm>
#include <span>

#include "syncline/expr.h"

namespace syncline {

struct Work {
  double flops = 0;  // additions, multiplications and functions of one element
  double bytes = 0;  // operands read once and results written once
};

inline double elements(const Meta& meta) { return static_cast<double>(meta.shape.size()); }

inline double bytes_of(const Meta& meta) { return elements(meta) * static_cast<double>(size_of(meta.dtype)); }

// One operation for each element of the largest operand or result.
inline Work plain_work(std::span<const Meta> in, std::span<const Meta> out) {
  Work work;
  for (const auto& metas : {in, out})
    for (const Meta& meta : metas) {
      work.flops = std::max(work.flops, elements(meta));
      work.bytes += bytes_of(meta);
    }
  return work;
}

// Of an op that only moves elements: it reads at most as many elements of an operand as it writes.
inline Work moved_work(std::span<const Meta> in, std::span<const Meta> out) {
  Work work;
  double written = 0;
  for (const Meta& meta : out) {
    written += elements(meta);
    work.bytes += bytes_of(meta);
  }
  for (const Meta& meta : in)
    work.bytes += std::min(elements(meta), written) * static_cast<double>(size_of(meta.dtype));
  return work;
}

}  // namespace syncline
