// Sine and cosine of angles of any size: the accuracy, and that an element's bits do not depend on other elements.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/session.h"

namespace syncline::testing {
namespace {

template <class T>
std::vector<T> angles() {
  std::vector<T> x;
  for (int i = 0; i < 67; ++i) {
    x.push_back(static_cast<T>(0.37 * i - 11));
    x.push_back(static_cast<T>((i % 2 == 0 ? 1.7e9 : -1.7e9) + 64.0 * i));
    x.push_back(static_cast<T>(std::ldexp(1.3 + i, i)));
    x.push_back(static_cast<T>(38990 + i * 0.3));
  }
  x.insert(x.end(), {std::numeric_limits<T>::max(), -std::numeric_limits<T>::max(), T(0)});
  return x;
}

template <class T>
void check() {
  Session session(1);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {kUnknown}, .dtype = dtype_of<T>()});
  Function f({x}, {sin(x), cos(x)});
  const std::vector<T> values = angles<T>();
  const std::vector<Array> got = f({Array::from<T>({static_cast<std::int64_t>(values.size())}, values)});
  const std::vector<T> sines(got[0].template values<T>().begin(), got[0].template values<T>().end());
  const std::vector<T> cosines(got[1].template values<T>().begin(), got[1].template values<T>().end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wide = static_cast<double>(values[i]), tolerance = 4 * std::numeric_limits<T>::epsilon();
    EXPECT_NEAR(static_cast<double>(sines[i]), std::sin(wide), tolerance) << values[i];
    EXPECT_NEAR(static_cast<double>(cosines[i]), std::cos(wide), tolerance) << values[i];
    const std::vector<Array> alone = f({Array::from<T>({1}, {values[i]})});
    EXPECT_EQ(alone[0].template values<T>()[0], sines[i]) << values[i];
    EXPECT_EQ(alone[1].template values<T>()[0], cosines[i]) << values[i];
  }
}

TEST(Angles, OfAnySizeInFloat32) { check<float>(); }
TEST(Angles, OfAnySizeInFloat64) { check<double>(); }

TEST(Angles, InfiniteOnesHaveNoSine) {
  Session session(1);
  SessionScope scope(session);
  const double infinity = std::numeric_limits<double>::infinity();
  const Expr x = placeholder({.shape = {3}, .dtype = DType::kFloat64});
  const Array y = Function({x}, {sin(x)})({Array::from<double>({3}, {infinity, -infinity, 0.5})})[0];
  EXPECT_TRUE(std::isnan(y.values<double>()[0]) && std::isnan(y.values<double>()[1]));
  EXPECT_NEAR(y.values<double>()[2], std::sin(0.5), 1e-15);
}

}  // namespace
}  // namespace syncline::testing
