// Compares the versions of loaded libraries with those that the program was built with.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <exception>

#include "base/version.h"
#include "comm/mpi/mpi_library.h"
#include "comm/nccl/nccl_choice.h"
#include "io/hdf5/version.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blas.h"
#include "ops/kernels/product/blocked_product.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/keras_json.h"
#include "tools/doctor/checks.h"

namespace syncline::tools {
namespace {

constexpr const char* kVersions = "versions";

// The names of a library with its version.
Finding compare(const std::string& built, const std::string& loaded) {
  if (built == loaded) return {Level::kOk, kVersions, loaded, ""};
  return {Level::kWarn, kVersions, fmt::format("{}, built with {}", loaded, built),
          "build again, or check whether LD_LIBRARY_PATH puts another library first"};
}

Finding check_mpi() {
  try {
    const comm::MpiVersion mpi = comm::mpi_version();
    // A plugin serves the other versions of its library too, and MPICH's the libraries of vendors.
    const std::string built = mpi.built == mpi.loaded ? "" : ", built with " + mpi.built;
    return {Level::kOk, kVersions, mpi.loaded + built, ""};
  } catch (const CommError& error) {
    return {Level::kWarn, kVersions, fmt::format("one process only. {}", error.what()), ""};
  }
}

Finding check_blas() {
  const kernels::Blas& blas = kernels::loaded_blas();
  if (!blas.refused.empty())
    return {Level::kWarn, kVersions,
            fmt::format("{} is not used: {}; some small matrix products are slower", blas.library, blas.refused),
            "install libopenblas0-pthread, and check that LD_LIBRARY_PATH does not hide it"};
  return {Level::kOk, kVersions, blas.library, ""};
}

// An OpenBLAS that is older than the processor takes it for another one.
Finding check_blas_kernels() {
  const kernels::Blas& blas = kernels::loaded_blas();
  const bool narrow = blas.refused.empty() && !blas.wide && kernels::has_wide_vectors();
  return {Level::kOk, kVersions,
          blas.processor +
              (narrow ? ", without AVX-512; with OPENBLAS_CORETYPE=SkylakeX small products may be faster" : ""),
          ""};
}

// The widest set that SYNCLINE_SIMD allows.
Finding check_instructions() {
  const std::vector<kernels::InstructionSet> sets = kernels::instruction_sets();
  const std::string simd = settings().simd;
  const std::int64_t allowed = kernels::instruction_sets_of(simd);
  const auto widest = std::find_if(sets.begin(), sets.end(), [&](const auto& set) { return (set.id & allowed) != 0; });
  return {Level::kOk, kInstructions,
          "instruction set " + widest->name +
              (simd == "common" ? ", or the widest that all ranks have (SYNCLINE_SIMD=common)" : ""),
          ""};
}

}  // namespace

const KerasJson& settings() {
  static const KerasJson defaults{};
  try {
    return keras_json();
  } catch (const std::exception&) {
    return defaults;
  }
}

Findings check_versions() {
  const io::Hdf5Version hdf5 = io::hdf5_version();
  const kernels::PoolVersion pool = kernels::pool_version();
  return {{Level::kOk, kVersions, fmt::format("Syncline {}", version()), ""},
          check_instructions(),
          check_mpi(),
          compare("HDF5 " + hdf5.built, "HDF5 " + hdf5.loaded),
          compare("oneTBB " + pool.built, "oneTBB " + pool.loaded),
          check_blas(),
          check_blas_kernels()};
}

std::string describe_versions() {
  std::string lines;
  for (const Finding& finding : check_versions()) lines += (lines.empty() ? "" : "\n") + finding.text;
  return lines;
}

Findings check_settings() {
  constexpr const char* kSettings = "keras.json";
  try {
    const KerasJson& found = keras_json();
    if (!found.faults.empty())
      return {{Level::kWarn, kSettings, "SYNCLINE_FAULT is set: a rank will fail on purpose", "unset SYNCLINE_FAULT"}};
    const bool split = found.optimizer_state == OptimizerState::kSplit;
    if (split && found.comm.transport == comm::Transport::kNccl)
      return {{Level::kFail, kSettings,
               "optimizer_state is split, but with the transport nccl each rank keeps all variables",
               "set SYNCLINE_OPTIMIZER_STATE=auto, or another transport"}};
    const bool replicated = found.optimizer_state == OptimizerState::kReplicated;
    return {{Level::kOk, kSettings,
             fmt::format("read; floatx {}, buckets of {} MiB, optimizer state {}", name_of(found.config.floatx),
                         found.later_buckets >> 20,
                         split        ? "split"
                         : replicated ? "replicated"
                                      : "auto"),
             ""}};
  } catch (const std::exception& error) {
    return {{Level::kFail, kSettings, error.what(), "fix the file or the variable that it names"}};
  }
}

Findings check_parts(int parts, int ranks) {
  constexpr const char* kParts = "parts";
  constexpr int kMost = KerasJson::kMostParts;
  if (parts == 0) return {};
  const std::string all = fmt::format("{} parts of a batch (SYNCLINE_PARTS)", parts);
  if (ranks > parts)
    return {{Level::kFail, kParts, fmt::format("{} for {} ranks", all, ranks),
             ranks > kMost ? fmt::format("use at most {} ranks, or set SYNCLINE_PARTS=0", kMost)
                           : fmt::format("set SYNCLINE_PARTS={}", std::bit_ceil(static_cast<unsigned>(ranks)))}};
  int most = 0;
  const std::vector<int> first = first_parts(ranks, parts);
  for (std::size_t r = 1; r < first.size(); ++r) most = std::max(most, first[r] - first[r - 1]);
  if (most * ranks == parts)
    return {{Level::kOk, kParts, fmt::format("{}, {} a rank: equal bits on 1 to {} ranks", all, most, parts), ""}};
  return {{Level::kWarn, kParts,
           fmt::format("{}, up to {} a rank: {} ranks are no faster than {}", all, most, ranks, parts / most),
           fmt::format("use {} ranks, or {}", parts / most, std::bit_ceil(static_cast<unsigned>(ranks)))}};
}

Findings check_gpus(const comm::Launch& launch) {
  constexpr const char* kGpus = "GPUs";
  try {
    comm::NcclLibrary library{};
    comm::NcclOptions options = comm::read_nccl_environment(launch);
    options.local_rank = launch.local_rank;
    const comm::NcclAvailability found = comm::look_for_gpus(options, library);
    if (found.usable == 0) return {{Level::kOk, kGpus, fmt::format("not used. {}", found.why_not.data()), ""}};
    return {{Level::kOk, kGpus,
             fmt::format("NCCL {}, GPU {}", comm::name_nccl_version(found.version), found.gpu.data()), ""}};
  } catch (const std::exception& error) {
    return {{Level::kFail, kGpus, error.what(), "fix the variable that it names"}};
  }
}

}  // namespace syncline::tools
