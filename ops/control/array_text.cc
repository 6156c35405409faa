#include "ops/control/array_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "syncline/float16.h"

namespace syncline {
namespace {

constexpr std::int64_t kMostElements = 1000, kEdge = 3;
constexpr std::size_t kLineWidth = 75;
constexpr int kPrecision = 8;

// The digits before and after the point, and the exponent ("e+07").
struct Parts {
  std::string whole, fraction, exponent;
};

Parts split(std::string text) {
  Parts parts;
  if (const auto e = text.find('e'); e != std::string::npos) {
    parts.exponent = text.substr(e);
    text.resize(e);
  }
  const auto point = text.find('.');
  parts.whole = text.substr(0, point);
  if (point != std::string::npos) parts.fraction = text.substr(point + 1);
  return parts;
}

// Returns the number with the fewest digits that float16 rounds to x.
double shortest(Float16 x) {
  const auto value = static_cast<double>(x);
  if (!std::isfinite(value)) return value;
  double candidate = value;
  char text[64];
  for (int precision = 0; precision < 6; ++precision) {
    const char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, precision).ptr;
    std::from_chars(text, end, candidate);
    if (Float16(candidate).bits == x.bits) return candidate;
  }
  return value;
}

// The shortest digits that identify x, limited by the precision, without trailing zeros.
template <class T>
Parts digits_of(T x, std::chars_format format) {
  char text[512];
  Parts parts = split(std::string(text, std::to_chars(text, text + sizeof text, x, format).ptr));
  if (parts.fraction.size() > kPrecision)
    parts = split(std::string(text, std::to_chars(text, text + sizeof text, x, format, kPrecision).ptr));
  while (!parts.fraction.empty() && parts.fraction.back() == '0') parts.fraction.pop_back();
  return parts;
}

Parts digits_of(Float16 x, std::chars_format format) { return digits_of(shortest(x), format); }

std::string padded_left(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

// The common format of the numbers of one array; all have one width.
template <class T>
class FloatFormat {
 public:
  explicit FloatFormat(const std::vector<T>& values) {
    choose_exponent(values);
    bool nan = false, inf = false, negative_inf = false;
    for (const T element : values) {
      const auto x = static_cast<double>(element);
      nan = nan || std::isnan(x);
      inf = inf || std::isinf(x);
      negative_inf = negative_inf || (std::isinf(x) && x < 0);
      if (!std::isfinite(x)) continue;
      const Parts parts = digits_of(element, format());
      left_ = std::max(left_, parts.whole.size());
      right_ = std::max(right_, parts.fraction.size());
      exponent_ = std::max(exponent_, parts.exponent.size());
    }
    const std::size_t behind = right_ + exponent_ + 1;
    const std::size_t widest = inf ? 3 + std::size_t{negative_inf} : nan ? 3 : 0;
    if (widest > behind) left_ = std::max(left_, widest - behind);
  }

  std::string operator()(T element) const {
    const auto x = static_cast<double>(element);
    const std::size_t width = left_ + 1 + right_ + exponent_;
    if (std::isnan(x)) return padded_left("nan", width);
    if (std::isinf(x)) return padded_left(x < 0 ? "-inf" : "inf", width);
    const Parts parts = scientific_ ? all_digits(x) : digits_of(element, format());
    const std::string text = padded_left(parts.whole, left_) + '.' + parts.fraction;
    if (!scientific_) return text + std::string(right_ - parts.fraction.size(), ' ');
    return text + parts.exponent.substr(0, 2) + std::string(exponent_ - parts.exponent.size(), '0') +
           parts.exponent.substr(2);
  }

 private:
  std::chars_format format() const { return scientific_ ? std::chars_format::scientific : std::chars_format::fixed; }

  // Formats x with the number of digits of the longest fraction.
  Parts all_digits(double x) const {
    char text[64];
    const auto precision = static_cast<int>(right_);
    return split(
        std::string(text, std::to_chars(text, text + sizeof text, x, std::chars_format::scientific, precision).ptr));
  }

  void choose_exponent(const std::vector<T>& values) {
    double largest = 0, smallest = 0;
    for (const T element : values) {
      const auto x = static_cast<double>(element);
      if (!std::isfinite(x) || x == 0) continue;
      largest = std::max(largest, std::abs(x));
      smallest = smallest == 0 ? std::abs(x) : std::min(smallest, std::abs(x));
    }
    if (largest == 0) return;
    scientific_ = largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000;
  }

  bool scientific_ = false;
  std::size_t left_ = 0, right_ = 0, exponent_ = 0;
};

// Formats a scalar as Python does.
template <class T>
std::string text_of_number(T x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  const double size = std::abs(static_cast<double>(x));
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  char text[64];
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const std::string result(text, std::to_chars(text, text + sizeof text, x, format).ptr);
  return scientific || result.find('.') != std::string::npos ? result : result + ".0";
}

using Writer = std::function<std::string(std::int64_t)>;  // text of the element at a C-order index

// The visible indices along one axis; -1 marks the omitted range.
std::vector<std::int64_t> shown(std::int64_t size, bool summarize) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < size; ++i) {
    if (summarize && size > 2 * kEdge && i == kEdge) {
      indices.push_back(-1);
      i = size - kEdge;
    }
    indices.push_back(i);
  }
  return indices;
}

void collect(const Shape& shape, int axis, std::int64_t offset, bool summarize, std::vector<std::int64_t>& found) {
  if (axis == shape.ndim()) return found.push_back(offset);
  for (const std::int64_t i : shown(shape[axis], summarize))
    if (i >= 0) collect(shape, axis + 1, offset * shape[axis] + i, summarize, found);
}

class Layout {
 public:
  Layout(const Shape& shape, bool summarize, const Writer& write)
      : shape_(shape), summarize_(summarize), write_(write) {}

  std::string text(int axis, std::int64_t offset, const std::string& indent, std::size_t width) const {
    if (axis == shape_.ndim()) return write_(offset);
    const std::string inner =
        axis + 1 == shape_.ndim() ? row(offset, indent, width - 1) : rows(axis, offset, indent, width - 1);
    return '[' + inner.substr(indent.size()) + ']';
  }

 private:
  // `width` is the line width for elements, without the closing bracket.
  std::string row(std::int64_t offset, const std::string& indent, std::size_t width) const {
    std::string done, line = indent;
    bool first = true;
    for (const std::int64_t i : shown(shape_.back(), summarize_)) {
      if (!first) line += ' ';
      first = false;
      const std::string word = i < 0 ? "..." : write_(offset * shape_.back() + i);
      if (line.size() + word.size() > width && line.size() > indent.size()) {
        done += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
        line = indent;
      }
      line += word;
    }
    return done + line;
  }

  std::string rows(int axis, std::int64_t offset, const std::string& indent, std::size_t width) const {
    const std::string separator(static_cast<std::size_t>(shape_.ndim() - axis - 1), '\n');
    std::string result;
    for (const std::int64_t i : shown(shape_[axis], summarize_)) {
      if (!result.empty()) result += separator;
      result += indent + (i < 0 ? "..." : text(axis + 1, offset * shape_[axis] + i, indent + ' ', width));
    }
    return result;
  }

  const Shape& shape_;
  const bool summarize_;
  const Writer& write_;
};

template <class T>
Writer writer_of(const T* data, const std::vector<std::int64_t>& indices, bool scalar) {
  if constexpr (std::is_same_v<T, bool>) {
    return [data, scalar](std::int64_t i) { return std::string(data[i] ? (scalar ? "True" : " True") : "False"); };
  } else if constexpr (std::is_integral_v<T>) {
    std::size_t width = 0;
    for (const std::int64_t i : indices) width = std::max(width, std::to_string(data[i]).size());
    return [data, width](std::int64_t i) { return padded_left(std::to_string(data[i]), width); };
  } else {
    if (scalar) {
      if constexpr (std::is_same_v<T, Float16>)
        return [data](std::int64_t i) { return text_of_number(shortest(data[i])); };
      else return [data](std::int64_t i) { return text_of_number(data[i]); };
    }
    std::vector<T> values;
    for (const std::int64_t i : indices) values.push_back(data[i]);
    return [data, format = FloatFormat<T>(values)](std::int64_t i) { return format(data[i]); };
  }
}

}  // namespace

std::string text_of(const Array& value) {
  const Shape& shape = value.shape();
  if (shape.size() == 0) return "[]";
  const bool summarize = shape.size() > kMostElements;
  std::vector<std::int64_t> indices;
  collect(shape, 0, 0, summarize, indices);
  return with_stored_dtype(value.dtype(), [&]<class T>(T) {
    const Writer write = writer_of(value.data<T>(), indices, shape.ndim() == 0);
    return Layout(shape, summarize, write).text(0, 0, " ", kLineWidth);
  });
}

}  // namespace syncline
