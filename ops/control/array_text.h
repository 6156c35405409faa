// The text of an array, as NumPy's str() writes it.
#pragma once

#include <string>

#include "syncline/array.h"

namespace syncline {

// Formats numbers with the fewest digits that identify them, at most eight after the point, all in one width. Uses an
// exponent if the values span more than three powers of ten or are very large or small. Breaks lines at 75 characters.
// Shows the first and last three elements of each axis if the array has more than 1000 elements.
std::string text_of(const Array& value);

}  // namespace syncline
