// Helpers of the fuzz targets. A target is a file with LLVMFuzzerTestOneInput, which passes the bytes to one reader.
// The reader must read them or throw an IoError of one line. libFuzzer makes the bytes in the fuzz preset
// (scripts/fuzz); in other presets corpus_main.cc reads the committed files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "syncline/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace syncline::io {

// The path of a file in memory that has these bytes, the same file at each call. Throws InternalError.
std::string file_of(const std::uint8_t* data, std::size_t size);

// The error of the last rejected file, for corpus_main.cc.
inline std::string last_refusal;

// Runs `action`, which may throw IoError; another exception is a finding. True if nothing was thrown.
template <class Action>
bool read_or_refuse(Action action) {
  try {
    action();
    return true;
  } catch (const IoError& error) {
    last_refusal = error.what();
    if (last_refusal.find('\n') == last_refusal.npos) return false;
    std::fprintf(stderr, "more than one line: %s\n", error.what());
    std::abort();
  }
}

}  // namespace syncline::io
