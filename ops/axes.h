// Axes as an argument: one or several, sum(x, -1) or sum(x, {0, 2}).
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

namespace syncline {

struct Axes : std::vector<int> {
  Axes() = default;
  Axes(int axis) : std::vector<int>{axis} {}
  Axes(std::initializer_list<int> axes) : std::vector<int>(axes) {}
  Axes(std::vector<int> axes) : std::vector<int>(std::move(axes)) {}
};

}  // namespace syncline
