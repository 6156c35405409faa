#include "io/hdf5/handle.h"

#include <utility>

#include "io/files/refuse.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  // After reading a damaged file, the exit handler of HDF5 1.10 prints errors to stderr. Syncline has no file open for
  // writing at exit and needs no handler. The return code only tells whether the library was started before.
  static const herr_t no_exit_handler = H5dont_atexit();
  static_cast<void>(no_exit_handler);
  return mutex;
}

// HDF5 calls it for the innermost entry first, which names the cause; outer entries only name callers.
herr_t take_innermost(unsigned depth, const H5E_error2_t* entry, void* reason) {
  if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(reason) = entry->desc;
  return 0;
}

herr_t take_innermost_kind(unsigned depth, const H5E_error2_t* entry, void* kind) {
  if (depth == 0) *static_cast<hid_t*>(kind) = entry->min_num;
  return 0;
}

std::string innermost_reason() {
  std::string reason;
  if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &reason) < 0 || reason.empty())
    reason = "HDF5 gives no reason";
  H5Eclear2(H5E_DEFAULT);
  for (char& c : reason)
    if (c == '\n') c = ' ';
  return reason;
}

std::string where(const Hdf5Location& location) {
  const std::string file = join_text(location.kind, " '", location.file, "'");
  return location.object.empty() ? file : join_text(file, ", ", location.object);
}

}  // namespace

Hdf5Session::Hdf5Session() : lock_(library_mutex()) {
  if (H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_) < 0 || H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) < 0)
    fail<IoError>("HDF5: cannot initialize the library; check the installation of libhdf5");
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(std::exchange(other.close_, nullptr)) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

Hdf5Handle::~Hdf5Handle() {
  if (id_ >= 0 && close_ != nullptr) close_(id_);
}

void fail_at(const Hdf5Location& location, std::string_view problem) { refuse(where(location), ": ", problem); }

bool system_refused() {
  hid_t kind = H5I_INVALID_HID;
  if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost_kind, &kind) < 0) return false;
  return kind == H5E_CANTOPENFILE || kind == H5E_CANTLOCKFILE || kind == H5E_BADFILE;
}

void fail_hdf5(const Hdf5Location& location, std::string_view action) {
  refuse(where(location), ": cannot ", action, ": ", innermost_reason());
}

}  // namespace syncline::io
