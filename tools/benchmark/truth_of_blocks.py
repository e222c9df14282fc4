"""What the functions of functions.rules are that move, choose or contract, in
double precision. As in truth.py, some elements of each result are computed.
"""

import itertools
import math

from truth import Sample, _ELEMENT_STEP, _by_rows


def _at_places(shape, value, step=_ELEMENT_STEP):
    """A Sample of `value(place)` at some places of a result of that shape."""
    size = math.prod(shape)
    indices = sorted({*range(0, size, step if size > 10000 else 1), size - 1})
    values = []
    for index in indices:
        place = []
        for extent in reversed(shape):
            index, at = divmod(index, extent)
            place.append(at)
        values.append(value(*reversed(place)))
    return [Sample(indices, values)]


def transpose_2d(arrays, shapes):
    rows, columns = shapes[0]
    return _at_places((columns, rows),
                      lambda n, m: arrays[0][m * columns + n])


def concatenate_rows(arrays, shapes):
    (rows, first), (_, second) = shapes

    def value(b, n):
        if n < first:
            return arrays[0][b * first + n]
        return arrays[1][b * second + n - first]

    return _at_places((rows, first + second), value)


def cumsum_line(arrays, shapes):
    sums = list(itertools.accumulate(arrays[0]))
    return _at_places(shapes[0], sums.__getitem__)


cumsum_rows = _by_rows(lambda x: (list(itertools.accumulate(x)),))
argmax_axis_1 = _by_rows(lambda x: ([float(x.index(max(x)))],))
sort_rows = _by_rows(lambda x: (sorted(x),))
top_rows = _by_rows(lambda x: (sorted(x, reverse=True)[:16],))


def _variance(x):
    mean = math.fsum(x) / len(x)
    return math.fsum((v - mean)**2 for v in x) / (len(x) - 1)


var_axis_1 = _by_rows(lambda x: ([_variance(x)],))


def matmul_batched(arrays, shapes):
    a, b = arrays
    (batch, rows, depth), (_, _, columns) = shapes

    def value(i, m, n):
        return math.fsum(a[(i * rows + m) * depth + k] *
                         b[(i * depth + k) * columns + n]
                         for k in range(depth))

    return _at_places((batch, rows, columns), value)


def convolution_1x1(arrays, shapes):
    x, w = arrays
    batch, channels, height, width = shapes[0]
    plane = height * width

    def value(b, o, i, j):
        return math.fsum(x[(b * channels + c) * plane + i * width + j] *
                         w[o * channels + c] for c in range(channels))

    return _at_places((batch, shapes[1][0], height, width), value)


def _pairs(extent, at):
    """Elements that the three taps of a row of weights meet there."""
    return [(p, at + p - 1) for p in range(3) if 0 <= at + p - 1 < extent]


def convolution_groups(arrays, shapes):
    x, w = arrays
    _, channels, height, width = shapes[0]
    outputs, inputs = shapes[1][:2]
    each = outputs // (channels // inputs)

    def value(b, o, i, j):
        return math.fsum(
            x[((b * channels + o // each * inputs + c) * height + s) * width + t]
            * w[((o * inputs + c) * 3 + p) * 3 + q] for c in range(inputs)
            for p, s in _pairs(height, i) for q, t in _pairs(width, j))

    return _at_places((shapes[0][0], outputs, height, width), value)


def convolution_3x3_vjp(arrays, shapes):
    """The result, and the cotangents of image and weights."""
    x, w, dy = arrays
    batch, channels, height, width = shapes[0]
    outputs = shapes[1][0]

    def tap(o, c, p, q):
        return w[((o * channels + c) * 3 + p) * 3 + q]

    def y(b, o, i, j):
        return math.fsum(
            x[((b * channels + c) * height + s) * width + t] * tap(o, c, p, q)
            for c in range(channels) for p, s in _pairs(height, i)
            for q, t in _pairs(width, j))

    def dx(b, c, i, j):
        return math.fsum(
            dy[((b * outputs + o) * height + s) * width + t] *
            tap(o, c, 2 - p, 2 - q) for o in range(outputs)
            for p, s in _pairs(height, i) for q, t in _pairs(width, j))

    def dw(o, c, p, q):
        return math.fsum(
            x[((b * channels + c) * height + i + p - 1) * width + j + q - 1] *
            dy[((b * outputs + o) * height + i) * width + j]
            for b in range(batch) for i in range(height) for j in range(width)
            if 0 <= i + p - 1 < height and 0 <= j + q - 1 < width)

    image = (batch, outputs, height, width)
    return (_at_places(image, y) + _at_places(shapes[0], dx) +
            _at_places(shapes[1], dw))


def convolution_depthwise(arrays, shapes):
    x, w = arrays
    _, channels, height, width = shapes[0]

    def value(b, c, i, j):
        base = (b * channels + c) * height
        return math.fsum(
            x[(base + i + p - 1) * width + j + q - 1] * w[(c * 3 + p) * 3 + q]
            for p in range(3) for q in range(3)
            if 0 <= i + p - 1 < height and 0 <= j + q - 1 < width)

    return _at_places(shapes[0], value)


def max_pool_2x2(arrays, shapes):
    batch, channels, height, width = shapes[0]

    def value(b, c, i, j):
        base = (b * channels + c) * height
        return max(arrays[0][(base + 2 * i + p) * width + 2 * j + q]
                   for p in range(2) for q in range(2))

    return _at_places((batch, channels, height // 2, width // 2), value)


def max_pool_3x3(arrays, shapes):
    batch, channels, height, width = shapes[0]

    def value(b, c, i, j):
        base = (b * channels + c) * height
        return max(arrays[0][(base + p) * width + q]
                   for p in range(max(0, 2 * i - 1), min(height, 2 * i + 2))
                   for q in range(max(0, 2 * j - 1), min(width, 2 * j + 2)))

    return _at_places(
        (batch, channels, (height + 1) // 2, (width + 1) // 2), value)


def _attention(is_causal):

    def sample(arrays, shapes):
        q, k, v = arrays
        batch, heads, length, width = shapes[0]
        indices, values = [], []
        for h, i in itertools.product(
                range(batch * heads), {0, 1, length // 3, length - 1}):
            first = h * length * width
            query = q[first + i * width:first + (i + 1) * width]
            scores = []
            for j in range(i + 1 if is_causal else length):
                key = k[first + j * width:first + (j + 1) * width]
                scores.append(
                    math.fsum(s * t for s, t in zip(query, key)) /
                    math.sqrt(width))
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = math.fsum(weights)
            for e in range(width):
                indices.append(first + i * width + e)
                values.append(
                    math.fsum(s * v[first + j * width + e]
                              for j, s in enumerate(weights)) / total)
        return [Sample(indices, values)]

    return sample


attention = _attention(False)
attention_causal = _attention(True)


def embedding_sum(arrays, shapes):
    w, ids = arrays
    width = shapes[0][1]
    count, length = shapes[1]

    def value(b, d):
        return math.fsum(w[ids[b * length + i] * width + d]
                         for i in range(length))

    return _at_places((count, width), value)


def scatter_rows(arrays, shapes):
    x, ids, v = arrays
    width = shapes[0][1]
    of_row = {}
    for b, row in enumerate(ids):
        of_row.setdefault(row, []).append(b)

    def value(row, d):
        return math.fsum([x[row * width + d]] +
                         [v[b * width + d] for b in of_row.get(row, [])])

    return _at_places(shapes[0], value)


def _square(x, z, p, r, width):
    return math.fsum((s - t)**2
                     for s, t in zip(x[p * width:(p + 1) * width],
                                     z[r * width:(r + 1) * width]))


def distances(arrays, shapes):
    x, z = arrays
    (count, width), (others, _) = shapes
    return _at_places((count, others),
                      lambda p, r: math.sqrt(_square(x, z, p, r, width)))


def nearest_square(arrays, shapes):
    x, z = arrays
    (count, width), (others, _) = shapes
    indices = sorted({*range(0, count, count // 16 + 1), count - 1})
    return [
        Sample(indices, [
            min(_square(x, z, p, r, width) for r in range(others))
            for p in indices
        ])
    ]


def _sigmoid(x):
    return 1 / (1 + math.exp(-x))


def lstm_layer(arrays, shapes):
    """All steps of the first and the last sequence of the batch."""
    xs, h, c, wx, wh, bias = arrays
    length, batch, width = shapes[0]
    hidden = shapes[1][1]
    indices, values = [], []
    for b in sorted({0, batch - 1}):
        state = h[b * hidden:(b + 1) * hidden]
        cell = c[b * hidden:(b + 1) * hidden]
        for t in range(length):
            first = (t * batch + b) * width
            x = xs[first:first + width]
            gates = [
                math.fsum(s * u for s, u in zip(
                    x, wx[k * width:(k + 1) * width])) + math.fsum(
                        s * u for s, u in zip(
                            state, wh[k * hidden:(k + 1) * hidden])) + bias[k]
                for k in range(4 * hidden)
            ]
            cell = [
                _sigmoid(gates[hidden + k]) * cell[k] +
                _sigmoid(gates[k]) * math.tanh(gates[2 * hidden + k])
                for k in range(hidden)
            ]
            state = [
                _sigmoid(gates[3 * hidden + k]) * math.tanh(cell[k])
                for k in range(hidden)
            ]
            begin = (t * batch + b) * hidden
            indices.extend(range(begin, begin + hidden))
            values.extend(state)
    return [Sample(indices, values)]
