// The rates that this machine reaches, as limits for a profile. Measured once, on the pool's threads: about 0.1 s and
// 96 MiB.
#pragma once

namespace syncline {

struct MachineLimits {
  double flops = 0;  // a second: of a product of 768 x 768 x 768 in float32
  double bytes = 0;  // a second, read and written: of a[i] = b[i] + 3 * c[i] beyond the caches
};

MachineLimits measure_machine();

}  // namespace syncline
