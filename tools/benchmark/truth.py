"""What the functions of functions.rules are, in double precision.

Each takes the arrays of a case (flat) and their shapes, and returns a Sample
for each output. Of large outputs some rows are computed, spread over all.
"""

import dataclasses
import itertools
import math
import operator

# One row in so many; coprime to what kernels divide rows by.
_ROW_STEP = 7
# One element in so many of what has no rows.
_ELEMENT_STEP = 101


@dataclasses.dataclass
class Sample:
    """values[i] is what the output has at indices[i]."""
    indices: list
    values: list

    def largest_error(self, output):
        """Of |output - value| / max(1, |value|); inf where one is no number."""
        if len(self.indices) != len(self.values):
            raise ValueError("as many values as indices")
        largest = 0.0
        for index, value in zip(self.indices, self.values):
            error = abs(output[index] - value) / max(1.0, abs(value))
            if not error <= largest:
                largest = error if error == error else math.inf
        return largest


def _rows(count):
    return sorted({*range(0, count, _ROW_STEP), count - 1})


def _by_rows(function):
    """function(row of each input) -> the row of each output."""

    def sample(arrays, shapes):
        count, width = shapes[0]
        samples = None
        for r in _rows(count):
            results = function(*(_part(a, s, r, width)
                                 for a, s in zip(arrays, shapes)))
            samples = samples or [Sample([], []) for _ in results]
            for one, result in zip(samples, results):
                begin = r * len(result)
                one.indices.extend(range(begin, begin + len(result)))
                one.values.extend(result)
        return samples

    return sample


def _part(data, shape, r, width):
    if len(shape) == 2:
        return data[r * width:(r + 1) * width]
    # One for each row, or one row for all.
    return data if len(data) == width and data.typecode == "f" else data[r]


def _by_elements(function):

    def sample(arrays, shapes):
        size = len(arrays[0])
        indices = list(range(0, size, _ELEMENT_STEP if size > 10000 else 1))
        indices.extend({size - 1} - set(indices[-1:]))
        picked = [[a[i] for i in indices] for a in arrays]
        return [Sample(indices, list(map(function, *picked)))]

    return sample


def _softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    total = math.fsum(e)
    return [v / total for v in e]


def _log_softmax(x):
    top = max(x)
    total = top + math.log(math.fsum(math.exp(v - top) for v in x))
    return [v - total for v in x]


def _layer_norm(x, w, bias):
    mean = math.fsum(x) / len(x)
    variance = math.fsum((v - mean)**2 for v in x) / len(x)
    scale = 1 / math.sqrt(variance + 1e-5)
    return ([(v - mean) * scale * a + b for v, a, b in zip(x, w, bias)],)


def _rms_norm(x, w):
    scale = 1 / math.sqrt(math.fsum(v * v for v in x) / len(x) + 1e-5)
    return ([v * scale * a for v, a in zip(x, w)],)


def _log_softmax_backward(dy, y):
    total = math.fsum(dy)
    return ([d - math.exp(v) * total for d, v in zip(dy, y)],)


def _softmax_jvp(x, dx):
    y = _softmax(x)
    mean = math.fsum(map(operator.mul, y, dx))
    return y, [v * (d - mean) for v, d in zip(y, dx)]


def _gelu(x):
    return x * math.erfc(-x / math.sqrt(2)) / 2


def _mish(x):
    return x * math.tanh(math.log1p(math.exp(x)))


def _chain(x, y):
    a = max(x * 1.5 + 0.25, y)
    return (a * a - x) / (1 + abs(y)) + 0.5


softmax = _by_rows(lambda x: (_softmax(x),))
log_softmax = _by_rows(lambda x: (_log_softmax(x),))
layer_norm = _by_rows(_layer_norm)
rms_norm = _by_rows(_rms_norm)
log_softmax_backward = _by_rows(_log_softmax_backward)
softmax_jvp = _by_rows(_softmax_jvp)
cross_entropy_each = _by_rows(lambda x, t: ([-_log_softmax(x)[t]],))
sum_axis_1 = _by_rows(lambda x: ([math.fsum(x)],))
gelu = _by_elements(_gelu)
mish = _by_elements(_mish)
chain = _by_elements(_chain)
multiply_add = _by_elements(lambda x, y: x * y + x)


def cross_entropy_mean(arrays, shapes):
    x, target = arrays
    count, width = shapes[0]
    losses = [
        -_log_softmax(x[r * width:(r + 1) * width])[target[r]]
        for r in range(count)
    ]
    return [Sample([0], [math.fsum(losses) / count])]


def sum_axis_0(arrays, shapes):
    width = shapes[0][1]
    return [
        Sample(list(range(width)),
               [math.fsum(arrays[0][c::width]) for c in range(width)])
    ]


def sum_all(arrays, shapes):
    return [Sample([0], [math.fsum(arrays[0])])]


def _products(a, b_column, a_shape, columns):
    """Some elements of a product, corners included: (index, value)."""
    count, depth = a_shape
    rows = {*range(0, count, max(1, count // 23)), count - 1}
    picked = {*range(0, columns, max(1, columns // 19)), columns - 1}
    for c in sorted(picked):
        column = b_column(c)
        for r in sorted(rows):
            row = a[r * depth:(r + 1) * depth]
            yield r * columns + c, c, math.fsum(map(operator.mul, row, column))


def matmul(arrays, shapes):
    a, b = arrays
    columns = shapes[1][1]
    found = list(
        _products(a, lambda c: b[c::columns], shapes[0], columns))
    return [Sample([i for i, _, _ in found], [v for _, _, v in found])]


def matrix_vector(arrays, shapes):
    return matmul(arrays, [shapes[0], (shapes[1][0], 1)])


def vector_matrix(arrays, shapes):
    return matmul(arrays, [(1, shapes[0][0]), shapes[1]])


def convolution_3x3(arrays, shapes):
    """Some places of each image, corners included, in some channels."""
    x, w = arrays
    batch, channels, height, width = shapes[0]
    indices, values = [], []
    for b, o, i, j in itertools.product(
            {0, batch - 1}, {0, channels // 2, channels - 1},
            {0, height // 3, height - 1}, {0, width // 3, width - 1}):
        terms = []
        for c, p, q in itertools.product(range(channels), range(3), range(3)):
            row, column = i + p - 1, j + q - 1
            if 0 <= row < height and 0 <= column < width:
                terms.append(
                    x[((b * channels + c) * height + row) * width + column]
                    * w[((o * channels + c) * 3 + p) * 3 + q])
        indices.append(((b * channels + o) * height + i) * width + j)
        values.append(math.fsum(terms))
    return [Sample(indices, values)]


def linear_gelu(arrays, shapes):
    x, w, bias = arrays
    columns, depth = shapes[1]
    found = list(
        _products(x, lambda c: w[c * depth:(c + 1) * depth], shapes[0],
                  columns))
    return [
        Sample([i for i, _, _ in found],
               [_gelu(v + bias[c]) for _, c, v in found])
    ]
