// Truncated and changed files are read or refused with one clear error. No other exception and no crash may occur.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/arrays/npy.h"
#include "io/arrays/npz.h"
#include "syncline/data/loader.h"
#include "syncline/data/open_source.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

constexpr std::int64_t kRows = 12;

Array counted(DType dtype, Shape row) {
  row.insert(0, kRows);
  Array values(DType::kFloat64, row);
  for (std::int64_t i = 0; i < values.size(); ++i) values.data<double>()[i] = static_cast<double>(i % 97);
  return values.cast(dtype);
}

std::string text_of(const Array& bytes) { return {reinterpret_cast<const char*>(bytes.raw()), bytes.bytes()}; }

std::string npy_file() {
  const Array values = counted(DType::kFloat32, {3});
  return npy_header(values.dtype(), values.shape()) + text_of(values);
}

std::string idx_file() {
  return std::string{0, 0, 8, 2, 0, 0, 0, kRows, 0, 0, 0, 2} + text_of(counted(DType::kUint8, {2}));
}

std::string npz_file() {
  const std::vector<NamedArray> arrays{{"x", counted(DType::kFloat32, {3})}, {"y", counted(DType::kInt64, {})}};
  return text_of(serialize_npz("made", arrays, ""));
}

struct Format {
  const char* name;
  std::string (*make)();
};
void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

class DamagedFormats : public testing::TestWithParam<Format> {
 protected:
  // Opens the file and reads up to 1000 rows. Returns the error, or an empty text.
  std::string read(const std::string& bytes) {
    write_file(path_, bytes);
    try {
      const auto source = open_source(path_, {.memory = 1 << 20});
      // A damaged header may promise any number of rows of zero bytes.
      source->read_range(0, std::min<std::int64_t>(source->rows(), 1000));
      return "";
    } catch (const IoError& error) {
      EXPECT_CONTAINS(error.what(), path_);
      EXPECT_ONE_LINE(error.what());
      return error.what();
    }
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("data");
};

TEST_P(DamagedFormats, CutOffAnywhere) {
  const std::string whole = GetParam().make();
  EXPECT_EQ(read(whole), "");
  // A shorter prefix may be the header of a CSV file.
  for (std::size_t length = 6; length < whole.size(); ++length) EXPECT_NE(read(whole.substr(0, length)), "") << length;
}

TEST_P(DamagedFormats, WithMoreBehind) {
  if (GetParam().name == std::string("npz")) return;  // zip looks for its directory from the end
  EXPECT_CONTAINS(read(GetParam().make() + "x"), "has more than its header claims");
}

TEST_P(DamagedFormats, WithAnyByteChanged) {
  const std::string whole = GetParam().make();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int change : {1, 0x80}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      read(bytes);
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, DamagedFormats,
                         testing::Values(Format{"npy", npy_file}, Format{"idx", idx_file}, Format{"npz", npz_file}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DamagedData, RowsOfAnyShapeThatAreNotThere) {
  Scratch scratch;
  const std::string path = scratch.path("x.npy");
  write_file(path, npy_header(DType::kFloat32, {0, 1LL << 40, 1LL << 40}));
  EXPECT_CONTAINS(message_of([&] { open_source(path); }), "the impossible shape (0, 1099511627776, 1099511627776)");
}

TEST(DamagedData, ItsTextStaysOneLine) {
  Scratch scratch;
  const std::string path = scratch.path("x.npy");
  std::string bytes = npy_file();
  bytes.replace(bytes.find("<f4"), 3, "<\n4");
  write_file(path, bytes);
  EXPECT_CONTAINS(message_of([&] { open_source(path); }), "has type '<?4'");
}

TEST(DamagedHdf5, IsRefusedWhereItIs) {
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  Scratch scratch;
  const std::string path = scratch.path("data.h5");
  write_file(scratch.path("writer.py"), R"(
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("a", data=np.random.RandomState(0).rand(1000, 8), chunks=(100, 8),
                     compression="gzip", fletcher32=True)
    f["b"] = np.arange(1000)
    f["linked"] = h5py.ExternalLink("other.h5", "/a")
    f.create_dataset("elsewhere", (1000,), "f4", external=[("/etc/hostname", 0, 4000)])
    f.create_dataset("never_written", (1000, 1000), "f4", chunks=(10, 1000))
    f["texts"] = np.array([b"abc"] * 1000)
)");
  const Outcome outcome = run_shell(python() + " " + scratch.path("writer.py") + " " + path);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const auto refusal = [&](std::vector<std::string> columns) {
    std::string message = message_of([&] {
      const auto source = open_source(path, {.columns = std::move(columns)});
      source->read_range(0, source->rows());
    });
    EXPECT_CONTAINS(message, "data file '" + path + "'");
    EXPECT_ONE_LINE(message);
    return message;
  };
  EXPECT_CONTAINS(refusal({"linked"}), "/linked: is a soft or external link, which is refused");
  EXPECT_CONTAINS(refusal({"elsewhere"}), "/elsewhere: has external storage, which is refused");
  EXPECT_CONTAINS(refusal({"never_written"}), "/never_written: is short of data");
  EXPECT_CONTAINS(refusal({"texts"}), "/texts: has an unsupported element type");

  // Flipped bits, most of them in chunks, which then do not match their checksums.
  std::string bytes = read_file(path);
  const std::string whole = bytes;
  int refused = 0;
  for (std::size_t at = 4096; at < bytes.size(); at += bytes.size() / 40) {
    bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write_file(path, bytes);
    try {
      open_source(path, {.columns = {"a"}})->read_range(0, 1000);
    } catch (const IoError& error) {
      ++refused;
      EXPECT_ONE_LINE(error.what());
    }
  }
  EXPECT_GT(refused, 10);
  write_file(path, whole.substr(0, whole.size() / 2));
  EXPECT_CONTAINS(refusal({"a"}), "damaged or truncated");
}

// The file is truncated after it was opened: the loader throws, and continues once the file is whole again.
TEST(DamagedWhileReading, IsTheNextCallsError) {
  Scratch scratch;
  const std::string path = scratch.path("x.npy"), whole = npy_file();
  write_file(path, whole);
  const LoaderOptions options{.batch = 2, .shuffle = Shuffle::kNone, .memory = 2 * 12 * 3, .prefetch = 1};
  Loader loader(open_source(path), options);
  loader.batch(0, 0);
  std::filesystem::resize_file(path, whole.size() - 12);
  const std::string message = message_of([&] {
    for (std::int64_t step = 1; step < 6; ++step) loader.batch(0, step);
  });
  EXPECT_CONTAINS(message, "x.npy': ends before byte");
  write_file(path, whole);
  EXPECT_EQ(loader.batch(0, 5)[0].data<float>()[5], 35.0f);
}

}  // namespace
}  // namespace syncline::io
