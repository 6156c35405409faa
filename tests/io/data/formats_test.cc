// Reads files of every format that NumPy, h5py and a Python script wrote.
#include <gtest/gtest.h>

#include <map>

#include "syncline/data/open_source.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

constexpr std::int64_t kRows = 1000;

// Columns "images", uint8 (rows, 3, 2), and "labels", int32 (rows,).
constexpr const char* kWriter = R"(
import gzip, struct, sys
import h5py, numpy as np
n, folder = 1000, sys.argv[1] + "/"
images = (np.arange(n * 6) * 7 % 251).astype("u1").reshape(n, 3, 2)
labels = (np.arange(n) ** 2 % 9973 - 5).astype("i4")
np.save(folder + "images.npy", images)
np.save(folder + "labels.npy", labels.astype(">i4"))
np.savez(folder + "stored.npz", images=images, labels=labels)
np.savez_compressed(folder + "deflated.npz", images=images, labels=labels)
for name, options in (("contiguous", {}), ("chunked", dict(chunks=True, compression="gzip", shuffle=True))):
    with h5py.File(folder + name + ".h5", "w") as f:
        f.create_dataset("images", data=images, **options)
        f.create_dataset("labels", data=labels, **options)
        f.create_dataset("deep/halves", data=np.arange(n).astype("f2").reshape(n, 1), **options)
def idx(code, array):
    return struct.pack(">BBBB%dI" % array.ndim, 0, 0, code, array.ndim, *array.shape) + array.tobytes()
open(folder + "images.idx", "wb").write(idx(8, images))
open(folder + "labels.idx", "wb").write(idx(12, labels.astype(">i4")))
gzip.open(folder + "images.gz", "wb").write(idx(8, images))
gzip.open(folder + "labels.gz", "wb").write(idx(12, labels.astype(">i4")))
header = "labels," + ",".join("p%d" % i for i in range(6))
np.savetxt(folder + "all.csv", np.column_stack([labels, images.reshape(n, 6)]), "%d", ",", header=header, comments="")
np.save(folder + "truth.npy", np.arange(n) % 3 == 0)
np.save(folder + "fortran.npy", np.asfortranarray(images))
np.save(folder + "scalar.npy", np.float32(1))
np.savez(folder + "uneven.npz", a=images, b=labels[:7])
with h5py.File(folder + "uneven.h5", "w") as f:
    f["a"], f["b"], f["c"] = images, labels[:7], 1.5
)";

class DataFormats : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!has_h5py()) return;
    scratch_ = new Scratch;
    write_file(path("writer.py"), kWriter);
    const Outcome outcome = run_shell(python() + " " + path("writer.py") + " " + scratch_->directory());
    ASSERT_EQ(outcome.status, 0) << outcome.output;
  }
  static void TearDownTestSuite() {
    delete scratch_;
    scratch_ = nullptr;
  }
  void SetUp() override {
    if (scratch_ == nullptr) GTEST_SKIP() << python() << " has no h5py";
  }
  static std::string path(const std::string& name) { return scratch_->path(name); }

  static std::unique_ptr<Source> joined(const std::string& images, const std::string& labels) {
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(open_source(path(images), {.columns = {"images"}}));
    sources.push_back(open_source(path(labels), {.columns = {"labels"}}));
    return join_sources(std::move(sources));
  }
  static std::unique_ptr<Source> csv() {
    SourceOptions options;
    options.csv.columns = {{"images", "p0", "p5", DType::kUint8}, {"labels", "labels", "", DType::kInt32}};
    return open_source(path("all.csv"), options);
  }
  static std::map<std::string, std::unique_ptr<Source>> all() {
    std::map<std::string, std::unique_ptr<Source>> sources;
    sources["npy"] = joined("images.npy", "labels.npy");
    sources["idx"] = joined("images.idx", "labels.idx");
    sources["idx.gz"] = joined("images.gz", "labels.gz");
    sources["csv"] = csv();
    for (const std::string name : {"stored.npz", "deflated.npz", "contiguous.h5", "chunked.h5"})
      sources[name] = open_source(path(name), {.columns = {"images", "labels"}});
    return sources;
  }

  static Scratch* scratch_;
};
Scratch* DataFormats::scratch_ = nullptr;

void expect_row(std::vector<Array>& columns, std::int64_t at, std::int64_t row) {
  for (std::int64_t i = 0; i < 6; ++i)
    ASSERT_EQ(columns[0].data<std::uint8_t>()[at * 6 + i], (row * 6 + i) * 7 % 251) << "row " << row;
  ASSERT_EQ(columns[1].data<std::int32_t>()[at], row * row % 9973 - 5) << "row " << row;
}

TEST_F(DataFormats, HaveTheSameColumns) {
  for (const auto& [name, source] : all()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(source->rows(), kRows);
    ASSERT_EQ(source->columns().size(), 2u);
    EXPECT_EQ(source->columns()[0].name, "images");
    EXPECT_EQ(source->columns()[0].dtype, DType::kUint8);
    EXPECT_EQ(source->columns()[0].row, name == "csv" ? Shape{6} : (Shape{3, 2}));
    EXPECT_EQ(source->columns()[1].row, Shape{});
    EXPECT_EQ(source->columns()[1].dtype, DType::kInt32);
    EXPECT_EQ(source->row_bytes(), 10u);
  }
}

TEST_F(DataFormats, ReadAllRows) {
  for (const auto& [name, source] : all()) {
    SCOPED_TRACE(name);
    std::vector<Array> columns = source->read_range(0, kRows);
    for (std::int64_t row = 0; row < kRows; ++row) expect_row(columns, row, row);
  }
}

TEST_F(DataFormats, ReadAnyRowsInAnyOrder) {
  std::vector<std::int64_t> rows{999, 0, 1, 2, 500, 499, 3, 3, 998, 999};
  for (std::int64_t i = 0; i < 300; ++i) rows.push_back(i * i * 17 % kRows);
  for (const auto& [name, source] : all()) {
    SCOPED_TRACE(name);
    std::vector<Array> columns = source->make_room(static_cast<std::int64_t>(rows.size()) + 3);
    source->read(rows, columns, 3);
    for (std::size_t i = 0; i < rows.size(); ++i) expect_row(columns, static_cast<std::int64_t>(i) + 3, rows[i]);
  }
}

TEST_F(DataFormats, RefuseRowsThatAreNotThere) {
  for (const auto& [name, source] : all()) {
    SCOPED_TRACE(name);
    std::vector<Array> columns = source->make_room(2);
    for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{kRows - 1, kRows}, {-1, 0}})
      EXPECT_CONTAINS(message_of<ValueError>([&, &from = *source] { from.read(rows, columns); }),
                      "are requested, but there are 1000");
  }
}

TEST_F(DataFormats, TakeAllArraysUnlessToldOtherwise) {
  EXPECT_EQ(open_source(path("stored.npz"))->columns().size(), 2u);
  EXPECT_EQ(open_source(path("chunked.h5"))->columns().size(), 2u);
  EXPECT_EQ(open_source(path("all.csv"))->columns().size(), 7u);
  EXPECT_EQ(open_source(path("images.npy"))->columns()[0].name, "images");
  EXPECT_EQ(open_source(path("images.gz"))->columns()[0].name, "images");
}

TEST_F(DataFormats, Hdf5GoesIntoGroups) {
  const auto source = open_source(path("chunked.h5"), {.columns = {"deep/halves"}});
  EXPECT_EQ(source->columns()[0].row, Shape{1});
  EXPECT_EQ(source->read_range(998, 999)[0].cast(DType::kFloat32).item(), 998);
}

TEST_F(DataFormats, BoolsAreBools) {
  EXPECT_EQ(open_source(path("truth.npy"))->read_range(2, 4)[0].values<bool>()[1], true);
}

TEST_F(DataFormats, RefuseWhatHasNoRows) {
  const auto refusal = [](const std::string& name, std::vector<std::string> columns = {}) {
    std::string message = message_of([&] { open_source(path(name), {.columns = std::move(columns)}); });
    EXPECT_CONTAINS(message, path(name));
    EXPECT_ONE_LINE(message);
    return message;
  };
  EXPECT_CONTAINS(refusal("fortran.npy"), "is in Fortran order");
  EXPECT_CONTAINS(refusal("scalar.npy"), "holds a scalar, which has no rows");
  EXPECT_CONTAINS(refusal("uneven.h5", {"c"}), "/c: is a scalar and has no rows");
  EXPECT_CONTAINS(refusal("uneven.h5", {"a", "b"}), "/b: has 7 rows, but 'a' has 1000");
  EXPECT_CONTAINS(refusal("uneven.npz"), "'b' has 7 rows, but 'a' has 1000");
  EXPECT_CONTAINS(refusal("uneven.h5", {"d"}), "/d: is missing");
  EXPECT_CONTAINS(refusal("uneven.npz", {"d"}), "has no array 'd'");
  EXPECT_CONTAINS(message_of<ValueError>([] {
                    open_source(path("images.npy"), {.columns = {"a", "b"}});
                  }),
                  "holds one array, but 2 columns are requested");
}

TEST_F(DataFormats, RefuseToUnpackMoreThanMayBeHeld) {
  const auto refusal = [](const std::string& name) {
    return message_of([&] { open_source(path(name), {.memory = 5999}); });
  };
  EXPECT_CONTAINS(refusal("images.gz"), "its 6000 bytes must be held in memory, but only 5999 are allowed");
  EXPECT_CONTAINS(refusal("deflated.npz"), "bytes must be held in memory, but only 5999 are left");
}

TEST(JoinedSources, RefuseRowsThatDiffer) {
  const auto of = [](std::string name, std::int64_t rows) {
    return array_source({{std::move(name), Array(DType::kUint8, {rows, 2})}});
  };
  const auto join = [&](std::string name, std::int64_t rows) {
    std::vector<std::unique_ptr<Source>> sources;
    sources.push_back(of("x", 5));
    sources.push_back(of(std::move(name), rows));
    return join_sources(std::move(sources));
  };
  EXPECT_EQ(join("y", 5)->row_bytes(), 4u);
  EXPECT_EQ(message_of<ValueError>([&] { join("y", 4); }),
            "data source: column 'y' has 4 rows, but 'x' has 5; they belong to different data sets");
  EXPECT_CONTAINS(message_of<ValueError>([&] { join("x", 5); }), "two columns have the name 'x'");
  EXPECT_CONTAINS(message_of<ValueError>([&] { array_source({{"x", Array::scalar(1)}}); }), "has no rows");
}

}  // namespace
}  // namespace syncline::io
