#include "comm/worker/collective.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "comm/single.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

float buffer[4];

TEST(Collective, Describes) {
  const Tag tag{0x12ab, 3, 1};
  const std::vector<std::int64_t> counts{4, 8};
  EXPECT_EQ(describe(make_all_reduce(tag, buffer, 4, DType::kFloat32, Reduce::kMax).header),
            "all_reduce of plan 12ab step 3 bucket 1, max of float32 x 4");
  EXPECT_EQ(describe(make_all_gather(tag, buffer, buffer, counts, 0, 2).header),
            "all_gather of plan 12ab step 3 bucket 1, 12 bytes");
  EXPECT_EQ(describe(make_broadcast(tag, buffer, 16, 1, 2).header),
            "broadcast of plan 12ab step 3 bucket 1, 16 bytes from rank 1");
}

TEST(Collective, SaysWhatACollectiveIsFor) {
  const Tag kernel{1, 2, 0, remember_names("gradient of kernel")}, bias{1, 2, 0, remember_names("gradient of bias")};
  const std::vector<Header> headers{make_all_reduce(kernel, buffer, 4, DType::kFloat32, Reduce::kSum).header,
                                    make_all_reduce(bias, buffer, 4, DType::kFloat32, Reduce::kSum).header};
  EXPECT_EQ(describe(headers[0]), "all_reduce of plan 1 step 2 bucket 0 (gradient of kernel), sum of float32 x 4");
  const std::string text = describe_mismatch(headers[0], headers[1], 0, 1);
  EXPECT_NE(text.find("ranks disagree about the purpose of a collective"), text.npos) << text;
  EXPECT_NE(text.find("(gradient of bias), sum of float32 x 4 on rank 1"), text.npos) << text;
  EXPECT_EQ(names_of(0x12ab), "names of digest 12ab");
}

TEST(Collective, RefusesWrongArguments) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> one{4}, negative{4, -1}, second{0, 4}, large{kMost, kMost};
  EXPECT_THROW(make_all_reduce({}, buffer, 4, DType::kBool, Reduce::kSum), DTypeError);
  EXPECT_THROW(make_all_reduce({}, buffer, -1, DType::kInt8, Reduce::kSum), ValueError);
  EXPECT_THROW(make_all_reduce({}, nullptr, 1, DType::kInt8, Reduce::kSum), ValueError);
  EXPECT_THROW(make_all_reduce({}, buffer, std::numeric_limits<std::int64_t>::max() / 2, DType::kFloat64, Reduce::kSum),
               ValueError);
  EXPECT_THROW(make_all_gather({}, buffer, buffer, one, 0, 2), ValueError);
  EXPECT_THROW(make_all_gather({}, buffer, buffer, negative, 0, 2), ValueError);
  EXPECT_THROW(make_all_gather({}, nullptr, buffer, second, 1, 2), ValueError);
  EXPECT_NO_THROW(make_all_gather({}, nullptr, buffer, second, 0, 2));
  EXPECT_THROW(make_all_gather({}, buffer, buffer, large, 0, 2), ValueError);
  EXPECT_THROW(make_gather_on_nodes({}, buffer, large, 2), ValueError);
  EXPECT_THROW(make_reduce_scatter({}, buffer, large, DType::kInt8, Reduce::kSum, 2), ValueError);
  EXPECT_THROW(make_broadcast({}, buffer, 4, 2, 2), ValueError);
  EXPECT_THROW(make_broadcast({}, buffer, 4, -1, 2), ValueError);
  EXPECT_THROW(make_broadcast({}, buffer, -4, 0, 2), ValueError);
}

TEST(Collective, NamesARankThatDiffers) {
  EXPECT_EQ(
      describe_mismatch(make_broadcast({}, buffer, 4, 1, 4).header, make_broadcast({}, buffer, 8, 1, 4).header, 0, 2),
      "ranks disagree about the count of a collective: broadcast of plan 0 step 0 bucket 0, 4 bytes from rank 1 "
      "on rank 0, but broadcast of plan 0 step 0 bucket 0, 8 bytes from rank 1 on rank 2; every rank must run "
      "the same functions in the same order on equal graphs");
}

// The header of a rank with the other byte order.
TEST(Collective, DescribesWhatItCannotRead) {
  std::vector<float> data(4);
  const Collective collective = make_all_reduce({0xbeef, 1, 2}, data.data(), 4, DType::kFloat64, Reduce::kMin);
  Header swapped = collective.header;
  swapped.what = __builtin_bswap32(swapped.what);
  swapped.plan = __builtin_bswap64(swapped.plan);
  const std::string text = describe_mismatch(collective.header, swapped, 0, 1);
  EXPECT_NE(text.find("another byte order"), std::string::npos) << text;
  EXPECT_NE(text.find("min of float64 x 4 on rank 0"), std::string::npos) << text;
}

TEST(Single, DoesNothingAndIsDone) {
  const auto comm = make_single_communicator();
  EXPECT_EQ(comm->rank(), 0);
  EXPECT_EQ(comm->size(), 1);
  check_all_reduce(*comm, {0, 1, 1000});
  check_all_gather(*comm);
  check_broadcast(*comm);
  check_many_tickets(*comm);
  check_done(*comm);
  EXPECT_THROW(comm->broadcast({}, buffer, 4, 1), ValueError);
  EXPECT_THROW(comm->wait(1'000'000), ValueError);
}

}  // namespace
}  // namespace syncline::comm
