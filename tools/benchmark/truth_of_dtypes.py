"""What functions of functions.rules are of halves and doubles, and element by
element, in double precision. As in truth.py, some elements of each result are
computed.
"""

import math

from truth import Sample
from truth_of_blocks import _at_places


def _pointwise(function):
    """A truth of function(element of each input)."""

    def sample(arrays, shapes):
        width = shapes[0][1]
        return _at_places(
            shapes[0], lambda r, c: function(*(a[r * width + c]
                                               for a in arrays)))

    return sample


gelu = _pointwise(lambda x: x / 2 * math.erfc(-x / math.sqrt(2)))
log = _pointwise(math.log)
sigmoid = _pointwise(lambda x: 1 / (1 + math.exp(-x)))
lerp = _pointwise(lambda a, b, weight: a + weight * (b - a))
# With the sign of the divisor.
remainder = _pointwise(lambda a, b: math.fmod(a, b) +
                       (b if math.fmod(a, b) * b < 0 else 0))


def layer_norm(arrays, shapes):
    x, w, bias = arrays
    count, width = shapes[0]
    sample = Sample([], [])
    for r in sorted({0, count - 1}):
        row = x[r * width:(r + 1) * width]
        mean = math.fsum(row) / width
        variance = math.fsum((v - mean)**2 for v in row) / width
        size = math.sqrt(variance + 1e-5)
        sample.indices.extend(range(r * width, (r + 1) * width))
        sample.values.extend((v - mean) / size * w[c] + bias[c]
                             for c, v in enumerate(row))
    return [sample]


def scatter_elements(arrays, shapes):
    x, places, updates = arrays
    count, width = shapes[0]
    few = shapes[1][1]
    sample = Sample([], [])
    for r in sorted({0, count - 1}):
        row = list(x[r * width:(r + 1) * width])
        for at in range(r * few, (r + 1) * few):
            row[places[at]] += updates[at]
        sample.indices.extend(range(r * width, (r + 1) * width))
        sample.values.extend(row)
    return [sample]
