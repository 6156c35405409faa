"""Configuration: scripts of calls, whose results come back as small arrays."""

from generate.oracle import case


def set_and_back(K, get, set_value, values):
    before, seen = get(), []
    for value in values:
        set_value(value)
        seen.append(get())
    set_value(before)
    return [before, *seen]


for values in ([], ["float64"], ["float32"], ["float32", "float64"], ["float64", "float32"]):
    case("floatx", call=lambda K, values: set_and_back(K, K.floatx, K.set_floatx, values), values=values)
