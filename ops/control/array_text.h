// The text of an array, as NumPy's str() writes it.
#pragma once

#include <string>

#include "syncline/array.h"

namespace syncline {

// Numbers have the fewest digits that tell them apart from their neighbours, at most eight behind the point, and one
// width; an exponent if they span more than three powers of ten or are very large or small. Lines break at 75
// characters. Of an array of more than 1000 elements the first and last three along each axis are shown.
std::string text_of(const Array& value);

}  // namespace syncline
