// print_tensor: its text, and the number of times that it writes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "comm/local/local_communicator.h"
#include "ops/control/array_text.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

// The text that `body` writes to standard output.
std::string written(const std::function<void()>& body) {
  ::testing::internal::CaptureStdout();
  body();
  return ::testing::internal::GetCapturedStdout();
}

Array counted(const Shape& shape, double scale = 1) {
  Array a(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = static_cast<double>(i) * scale;
  return a;
}

Array doubles(std::vector<double> values) {
  return Array::from<double>({static_cast<std::int64_t>(values.size())}, values);
}

// The expected texts are NumPy's.
TEST(ArrayText, OfFloats) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text_of(Array::from<float>({1, 1}, {1})), "[[1.]]");
  EXPECT_EQ(text_of(Array::from<float>({4}, {0.1f, 1 / 3.f, -2.5f, 1000})),
            "[ 1.0000000e-01  3.3333334e-01 -2.5000000e+00  1.0000000e+03]");
  EXPECT_EQ(text_of(doubles({1e-5, 1})), "[1.e-05 1.e+00]");
  EXPECT_EQ(text_of(doubles({1e8, 2.5, -1})), "[ 1.0e+08  2.5e+00 -1.0e+00]");
  EXPECT_EQ(text_of(doubles({1e100, 1e-7, nan, -inf})), "[1.e+100 1.e-007     nan    -inf]");
  EXPECT_EQ(text_of(doubles({nan, 1.5, inf})), "[nan 1.5 inf]");
  EXPECT_EQ(text_of(doubles({nan})), "[nan]");
  EXPECT_EQ(text_of(doubles({123456.789, 0.25, 1.123456789012})), "[1.23456789e+05 2.50000000e-01 1.12345679e+00]");
  EXPECT_EQ(text_of(doubles({0, -0.0})), "[ 0. -0.]");
  EXPECT_EQ(text_of(doubles({999999.5, 1000})), "[999999.5   1000. ]");
  EXPECT_EQ(text_of(Array::from<float>({1}, {1.5e-5f})), "[1.5e-05]");
}

TEST(ArrayText, OfOtherTypes) {
  EXPECT_EQ(text_of(Array::from<std::int64_t>({2, 2}, {1, -20, 300, 4})), "[[  1 -20]\n [300   4]]");
  EXPECT_EQ(text_of(Array::from<bool>({2}, {true, false})), "[ True False]");
  EXPECT_EQ(text_of(Array::from<std::uint8_t>({2}, {200, 3})), "[200   3]");
  EXPECT_EQ(text_of(Array::from<std::int32_t>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})),
            "[[[ 0  1]\n  [ 2  3]\n  [ 4  5]]\n\n [[ 6  7]\n  [ 8  9]\n  [10 11]]]");
  EXPECT_EQ(text_of(Array(DType::kFloat32, {0, 3})), "[]");
}

TEST(ArrayText, OfHalves) {
  const Array halves = doubles({0.1, 1.0 / 3, -2049, 65504}).cast(DType::kFloat16);
  EXPECT_EQ(text_of(halves), "[ 9.998e-02  3.333e-01 -2.048e+03  6.550e+04]");
  EXPECT_EQ(text_of(doubles({0.5, 1.25}).cast(DType::kFloat16)), "[0.5  1.25]");
}

TEST(ArrayText, OfScalars) {
  EXPECT_EQ(text_of(Array::scalar(0.1f)), "0.1");
  EXPECT_EQ(text_of(Array::scalar(1e17)), "1e+17");
  EXPECT_EQ(text_of(Array::scalar(3.0)), "3.0");
  EXPECT_EQ(text_of(Array::scalar(true)), "True");
  EXPECT_EQ(text_of(Array::scalar(std::int64_t{7})), "7");
}

TEST(ArrayText, BreaksLinesAndLeavesOut) {
  EXPECT_EQ(text_of(counted({30}, 1000).cast(DType::kInt64)),
            "[    0  1000  2000  3000  4000  5000  6000  7000  8000  9000 10000 11000\n"
            " 12000 13000 14000 15000 16000 17000 18000 19000 20000 21000 22000 23000\n"
            " 24000 25000 26000 27000 28000 29000]");
  EXPECT_EQ(text_of(counted({40, 50}).cast(DType::kInt64)),
            "[[   0    1    2 ...   47   48   49]\n [  50   51   52 ...   97   98   99]\n"
            " [ 100  101  102 ...  147  148  149]\n ...\n [1850 1851 1852 ... 1897 1898 1899]\n"
            " [1900 1901 1902 ... 1947 1948 1949]\n [1950 1951 1952 ... 1997 1998 1999]]");
  EXPECT_EQ(text_of(counted({1001}, 0.125)), "[  0.      0.125   0.25  ... 124.75  124.875 125.   ]");
}

class PrintTensor : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

TEST_F(PrintTensor, WritesInEachStepThatUsesIt) {
  const Expr x = placeholder({.shape = {1, 1}, .dtype = DType::kFloat64});
  const Expr shown = print_tensor(x, "msg"), again = print_tensor(x, "msg");
  Function uses({x}, {shown * shown, gradients(sum(shown * 2.0), {x})[0]});
  Array one(DType::kFloat64, {1, 1});
  *one.data<double>() = 1;
  EXPECT_EQ(written([&] { uses({one}); }), "msg [[1.]]\n");
  EXPECT_EQ(written([&] { uses({one}); }), "msg [[1.]]\n");
  EXPECT_EQ(written([&] { Function({x}, {shown + again})({one}); }), "msg [[1.]]\nmsg [[1.]]\n");
  EXPECT_EQ(written([&] { Function({x}, {x})({one}); }), "");
  EXPECT_EQ(written([&] { Function({}, {print_tensor(constant(2.0))})({}); }), "2.0\n");
}

TEST_F(PrintTensor, WritesOncePerIteration) {
  const Expr x = placeholder({.shape = {kUnknown, 1}, .dtype = DType::kFloat64});
  const FoldFunction fn = [](const Expr& a, const Expr& e) { return a * print_tensor(e, "e"); };
  const Expr y = foldl(fn, x);
  Function f({x}, {y, gradients(y, {x})[0]});
  EXPECT_EQ(written([&] { f({counted({3, 1})}); }), "e [1.]\ne [2.]\n");
}

TEST_F(PrintTensor, WritesOnlyOnTheTakenSideAndOnce) {
  const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
  const Expr y = switch_(
      greater(sum(x), scalar_like(0, x)), [&] { return square(print_tensor(exp(x), "then")); },
      [&] { return square(print_tensor(x, "else")); });
  Function f({x}, {y, gradients(sum(y), {x})[0]});
  EXPECT_EQ(written([&] { f({doubles({0, 0})}); }), "else [0. 0.]\n");
  EXPECT_EQ(written([&] { f({doubles({0.5, -0.25})}); }), "then [1.64872127 0.77880078]\n");
}

TEST_F(PrintTensor, TheJobWritesTheGlobalValueOnce) {
  for (const int size : {2, 3}) {
    const std::string text = written([&] {
      comm::spawn_ranks(size, [](comm::Communicator& communicator) {
        Session session(3);
        session.distribute(make_data_parallel(communicator));
        SessionScope scope(session);
        const Expr x = placeholder({.shape = {kUnknown}, .dtype = DType::kFloat64});
        const Expr doubled = map_fn([](const Expr& e) { return print_tensor(e * 2.0); }, print_tensor(x, "x ="));
        const Expr total = switch_(
            greater(sum(x), scalar_like(0, x)), [&] { return print_tensor(sum(x)); }, sum(x));
        Function({x}, {doubled})({counted({5})});
        Function({x}, {total})({counted({5})});
      });
    });
    EXPECT_EQ(text, "x = [0. 1. 2. 3. 4.]\n0.0\n2.0\n4.0\n6.0\n8.0\n10.0\n");
  }
}

}  // namespace
}  // namespace syncline
