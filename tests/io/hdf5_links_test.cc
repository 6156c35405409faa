// Files of other writers: whatever Keras may write is read; references to other files are refused.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "io/hdf5/array.h"
#include "io/hdf5/file.h"
#include "syncline/checkpoint/checkpoint.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

using Properties = std::function<void(hid_t)>;

class ForeignFile : public testing::Test {
 protected:
  // Writes a file in the layout of save_weights (layers at the root): one layer "l" with a weight "w" from `make`.
  void write(const std::function<void(Hdf5File& file, const Hdf5Group& layer)>& make) {
    Hdf5File file = Hdf5File::create(path_);
    const std::array<std::string, 1> layers{"l"}, weights{"w"};
    file.root().write_names("layer_names", layers);
    const Hdf5Group layer = file.root().make_group("l");
    layer.write_names("weight_names", weights);
    make(file, layer);
    file.commit();
  }

  // Makes a dataset "w" of eight elements of type `type`, with creation properties set by `set`, and writes 0, 1, ...
  // to the first `written` ones.
  void write_dataset(hid_t type, const Properties& set, hsize_t written = 8) {
    write([&](Hdf5File&, const Hdf5Group& layer) {
      const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      set(properties.get());
      const hsize_t count = 8;
      const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
      const Hdf5Handle dataset(
          H5Dcreate2(layer.id(), "w", type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose);
      ASSERT_GE(dataset.get(), 0);
      const std::array<float, 8> values{0, 1, 2, 3, 4, 5, 6, 7};
      if (written == 0) return;
      const hsize_t first = 0;
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &written, nullptr);
      ASSERT_GE(H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, space.get(), space.get(), H5P_DEFAULT, values.data()), 0);
    });
  }

  std::string refusal() {
    std::string message = message_of([&] { load_checkpoint(path_); });
    EXPECT_EQ(message_of([&] { summarize_checkpoint(path_); }), message);
    EXPECT_CONTAINS(message, "checkpoint '" + path_ + "', /l/w: ");
    EXPECT_ONE_LINE(message);
    return message;
  }

  Array loaded() { return load_checkpoint(path_).layers.at(0).weights.at(0).value; }

  Hdf5Session session_;
  Scratch scratch_;
  std::string path_ = scratch_.path("a.h5");
};

void chunked(hid_t properties) {
  const hsize_t chunk = 4;
  ASSERT_GE(H5Pset_chunk(properties, 1, &chunk), 0);
}

TEST_F(ForeignFile, WeightsAtTheRootWithoutState) {
  write_dataset(H5T_IEEE_F32LE, [](hid_t) {});
  const Checkpoint checkpoint = load_checkpoint(path_);
  EXPECT_FALSE(checkpoint.has_state);
  EXPECT_EQ(checkpoint.state, TrainingState{});
  EXPECT_EQ(checkpoint.layers.at(0).weights.at(0).value.data<float>()[7], 7);
}

// Versions without digests wrote a CRC-32.
TEST_F(ForeignFile, ChecksumsOfEarlierVersions) {
  const auto write_with = [&](std::uint32_t sum) {
    write([&](Hdf5File& file, const Hdf5Group& layer) {
      write_array(file, layer, "w", Array::from<float>(Shape{8}, {0, 1, 2, 3, 4, 5, 6, 7}));
      const Hdf5Handle dataset = layer.open("w");
      ASSERT_GE(H5Adelete(dataset.get(), "xxh3_128"), 0);
      const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
      const Hdf5Handle attribute(
          H5Acreate2(dataset.get(), "crc32", H5T_STD_U32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
      ASSERT_GE(H5Awrite(attribute.get(), H5T_NATIVE_UINT32, &sum), 0);
    });
  };
  constexpr std::uint32_t kSum = 2047492220;  // CRC-32 of the 32 bytes, computed by zlib
  write_with(kSum);
  EXPECT_EQ(loaded().data<float>()[7], 7);
  const VerifyReport report = verify_checkpoint(path_);
  EXPECT_TRUE(report.problems.empty());
  EXPECT_FALSE(report.has_digests);
  write_with(kSum ^ 1);
  EXPECT_CONTAINS(message_of([&] { loaded(); }), "/l/w: is damaged: its bytes have CRC-32");
}

TEST_F(ForeignFile, BigEndian) {
  write_dataset(H5T_IEEE_F64BE, [](hid_t) {});
  EXPECT_EQ(loaded().data<double>()[5], 5);
}

TEST_F(ForeignFile, ChunkedAndCompressed) {
  write_dataset(H5T_IEEE_F32LE, [](hid_t properties) {
    chunked(properties);
    H5Pset_shuffle(properties);
    H5Pset_deflate(properties, 4);
    H5Pset_fletcher32(properties);
  });
  EXPECT_EQ(loaded().data<float>()[6], 6);
}

TEST_F(ForeignFile, VariableLengthNames) {
  const Hdf5File file = Hdf5File::create(path_);
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  const hsize_t count = 2;
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  const std::array<const char*, 2> names{"alpha", "b"};
  {
    const Hdf5Handle attribute(
        H5Acreate2(file.root().id(), "layer_names", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    ASSERT_GE(H5Awrite(attribute.get(), type.get(), names.data()), 0);
  }
  EXPECT_EQ(file.root().read_names("layer_names"), (std::vector<std::string>{"alpha", "b"}));
}

TEST_F(ForeignFile, ExternalStorage) {
  write_dataset(
      H5T_IEEE_F32LE, [](hid_t p) { H5Pset_external(p, "/etc/hostname", 0, 32); }, /*fill=*/false);
  EXPECT_CONTAINS(refusal(), "has external storage, which is refused");
}

TEST_F(ForeignFile, VirtualDataset) {
  const hsize_t count = 8;
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  write_dataset(
      H5T_IEEE_F32LE, [&](hid_t p) { H5Pset_virtual(p, space.get(), "/etc/passwd", "x", space.get()); },
      /*fill=*/false);
  EXPECT_CONTAINS(refusal(), "is a virtual dataset, which is refused");
}

// To find the shape of such a dataset, HDF5 opens its sources, and a FIFO among them would block.
TEST_F(ForeignFile, VirtualDatasetsOfOpenSize) {
  for (const char* source : {"fifo", "fifo%b"}) {
    const std::string name = scratch_.path(source);
    ::alarm(20);
    const hsize_t count = 8, unlimited = H5S_UNLIMITED, zero = 0, one = 1;
    const Hdf5Handle space(H5Screate_simple(1, &count, &unlimited), H5Sclose);
    const Hdf5Handle part(H5Screate_simple(1, &count, &unlimited), H5Sclose);
    const bool printf = name.ends_with("%b");
    const hsize_t block = printf ? 2 : 1, stride = printf ? 2 : 1;
    ASSERT_GE(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &zero, &stride, &unlimited, &block), 0);
    if (printf) {
      ASSERT_GE(H5Sselect_hyperslab(part.get(), H5S_SELECT_SET, &zero, &one, &one, &block), 0);
    } else {
      ASSERT_GE(H5Sselect_hyperslab(part.get(), H5S_SELECT_SET, &zero, &one, &unlimited, &one), 0);
    }
    write([&](Hdf5File&, const Hdf5Group& layer) {
      const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      ASSERT_GE(H5Pset_virtual(properties.get(), space.get(), name.c_str(), "x", part.get()), 0);
      const Hdf5Handle dataset(
          H5Dcreate2(layer.id(), "w", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
          H5Dclose);
      ASSERT_GE(dataset.get(), 0);
    });
    for (const char* fifo : {"fifo", "fifo0"})
      ASSERT_TRUE(::mkfifo(scratch_.path(fifo).c_str(), 0666) == 0 || errno == EEXIST);
    EXPECT_CONTAINS(refusal(), "is a virtual dataset, which is refused");
    ::alarm(0);
  }
}

TEST_F(ForeignFile, SoftLink) {
  write([](Hdf5File&, const Hdf5Group& layer) {
    H5Lcreate_soft("/elsewhere", layer.id(), "w", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_CONTAINS(refusal(), "is a soft or external link");
}

TEST_F(ForeignFile, ExternalLink) {
  write([](Hdf5File&, const Hdf5Group& layer) {
    H5Lcreate_external("/tmp/other.h5", "/x", layer.id(), "w", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_CONTAINS(refusal(), "is a soft or external link");
}

TEST_F(ForeignFile, UnknownFilter) {
  write_dataset(H5T_IEEE_F32LE, [](hid_t properties) {
    chunked(properties);
    ASSERT_GE(H5Pset_scaleoffset(properties, H5Z_SO_FLOAT_DSCALE, 2), 0);
  });
  EXPECT_CONTAINS(refusal(), "is stored with filter 6, which is refused");
}

TEST_F(ForeignFile, UnknownType) {
  write([](Hdf5File&, const Hdf5Group& layer) {
    const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Handle dataset(H5Dcreate2(layer.id(), "w", H5T_C_S1, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                             H5Dclose);
  });
  EXPECT_CONTAINS(refusal(), "has an unsupported element type");
}

TEST_F(ForeignFile, NeverWritten) {
  write_dataset(
      H5T_IEEE_F32LE, [](hid_t) {}, /*written=*/0);
  EXPECT_CONTAINS(refusal(), "is short of data: shape (8,) of float32 needs 32 bytes, but at most 0 are stored");
}

// Their zeros are no data, but compression hides that their bytes are missing.
TEST_F(ForeignFile, CompressedChunksThatWereNeverWritten) {
  write_dataset(
      H5T_IEEE_F32LE,
      [](hid_t properties) {
        chunked(properties);
        H5Pset_deflate(properties, 4);
      },
      /*written=*/4);
  EXPECT_CONTAINS(refusal(), "is short of data: 1 of its 2 chunks were written");
}

TEST_F(ForeignFile, HugeShape) {
  write([](Hdf5File&, const Hdf5Group& layer) {
    const std::array<hsize_t, 2> dims{hsize_t{1} << 24, hsize_t{1} << 20};
    const Hdf5Handle space(H5Screate_simple(2, dims.data(), nullptr), H5Sclose);
    const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const std::array<hsize_t, 2> chunk{16, 16};
    H5Pset_chunk(properties.get(), 2, chunk.data());
    const Hdf5Handle dataset(
        H5Dcreate2(layer.id(), "w", H5T_STD_I8LE, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose);
    ASSERT_GE(dataset.get(), 0);
  });
  EXPECT_CONTAINS(refusal(), "is short of data");
}

TEST_F(ForeignFile, MissingWeight) {
  write([](Hdf5File&, const Hdf5Group&) {});
  EXPECT_CONTAINS(refusal(), "is missing");
}

TEST_F(ForeignFile, AGroupForAWeight) {
  write([](Hdf5File&, const Hdf5Group& layer) { layer.make_group("w"); });
  EXPECT_CONTAINS(refusal(), "is not a dataset");
}

TEST_F(ForeignFile, NoKerasLayoutAtAll) {
  {
    Hdf5File file = Hdf5File::create(path_);
    write_array(file, file.root(), "x", Array::scalar(1.0f));
    file.commit();
  }
  EXPECT_CONTAINS(message_of([&] { load_checkpoint(path_); }), "/layer_names: is missing");
}

}  // namespace
}  // namespace syncline::io
