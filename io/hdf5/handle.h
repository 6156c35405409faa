// The base for all uses of HDF5: the library's lock, handles that close themselves, and the error stack as one line.
//
// Only io includes hdf5.h, through this header (and io/hdf5/version.cc). Public headers of io do not include it.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <string_view>

namespace syncline::io {

// Holds the process's HDF5 lock (the serial library need not be thread-safe) and keeps HDF5 from printing its error
// stack. A thread must hold a session while it uses anything declared in io/hdf5/*.h. Sessions nest. The first session
// disables HDF5's cleanup at exit: other users of the library in this process must close their own files.
class Hdf5Session {
 public:
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// Owns one HDF5 identifier and closes it with the given function. Close errors are ignored: a file is either read-only,
// or laid out in memory (Hdf5Layout) and written to the disk by Hdf5File::commit.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle();

  hid_t get() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// The file and object of an HDF5 call, for messages.
struct Hdf5Location {
  std::string file;                      // path as the user gave it
  std::string object;                    // absolute path inside the file; empty: the file itself
  std::string_view kind = "checkpoint";  // of file; a string literal
  bool fixed_texts = false;              // refuse variable-length text
};

// Throws IoError with file, object and `problem`.
[[noreturn]] void fail_at(const Hdf5Location& location, std::string_view problem);
// Throws IoError with file, object, `action`, and the innermost reason on HDF5's error stack.
[[noreturn]] void fail_hdf5(const Hdf5Location& location, std::string_view action);

// Whether the HDF5 call that just failed could not open or lock a file, as opposed to finding damage in it.
bool system_refused();

// Returns `code`; throws IoError if it is negative. `action` reads like "open the dataset".
template <class Code>
Code checked(Code code, const Hdf5Location& location, std::string_view action) {
  if (code < 0) fail_hdf5(location, action);
  return code;
}
inline Hdf5Handle checked(hid_t id, Hdf5Handle::Close close, const Hdf5Location& location, std::string_view action) {
  return {checked(id, location, action), close};
}

}  // namespace syncline::io
