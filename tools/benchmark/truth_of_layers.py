"""What the layers of functions.rules are that turn, gate, normalise and pool, in
double precision. As in truth.py, some elements of each result are computed; the
last input of a gradient is the cotangent of the result.
"""

import math

import truth
from truth import Sample
from truth_of_blocks import _at_places, _sigmoid
from truth_of_dtypes import _pointwise

sin = _pointwise(math.sin)
atan2 = _pointwise(math.atan2)
norm_rows = truth._by_rows(lambda x: ([math.hypot(*x)],))


def rotary(arrays, shapes):
    x, cosine, sine = arrays
    _, heads, length, width = shapes[0]
    half = width // 2

    def value(b, h, l, e):
        row = ((b * heads + h) * length + l) * width
        at = l * half + e % half
        near, far = x[row + e % half], x[row + e % half + half]
        if e < half:
            return near * cosine[at] - far * sine[at]
        return far * cosine[at] + near * sine[at]

    return _at_places(shapes[0], value)


def gated_rows_vjp(arrays, shapes):
    x, dy = arrays
    rows, width = shapes[0]
    half = width // 2

    def result(b, n):
        gate = x[b * width + n]
        return gate * _sigmoid(gate) * x[b * width + n + half]

    def slope(b, n):
        gate, other = x[b * width + n % half], x[b * width + n % half + half]
        d, s = dy[b * half + n % half], _sigmoid(gate)
        if n < half:
            return d * other * (s + gate * s * (1 - s))
        return d * gate * s

    return (_at_places((rows, half), result) +
            _at_places((rows, width), slope))


def _groups(x, shape, groups):
    """Mean, and one over the deviation, of each group."""
    size = math.prod(shape[1:]) // groups
    found = []
    for g in range(shape[0] * groups):
        part = x[g * size:(g + 1) * size]
        mean = math.fsum(part) / size
        variance = math.fsum((v - mean)**2 for v in part) / size
        found.append((mean, 1 / math.sqrt(variance + 1e-5)))
    return size, found


def group_norm(arrays, shapes, groups=32):
    x, w, bias = arrays[:3]
    _, channels, height, width = shapes[0]
    size, found = _groups(x, shapes[0], groups)

    def value(b, c, i, j):
        at = ((b * channels + c) * height + i) * width + j
        mean, scale = found[at // size]
        return (x[at] - mean) * scale * w[c] + bias[c]

    return _at_places(shapes[0], value)


def group_norm_vjp(arrays, shapes, groups=32):
    x, w, _, dy = arrays
    _, channels, height, width = shapes[0]
    plane = height * width
    size, found = _groups(x, shapes[0], groups)
    dw, dbias = [0.0] * channels, [0.0] * channels
    sums = []
    for g, (mean, scale) in enumerate(found):
        first = second = 0.0
        for p in range(g * size, (g + 1) * size, plane):
            c = p // plane % channels
            d = dy[p:p + plane]
            z = [(v - mean) * scale for v in x[p:p + plane]]
            total = math.fsum(d)
            product = math.fsum(a * b for a, b in zip(d, z))
            dw[c] += product
            dbias[c] += total
            first += w[c] * total
            second += w[c] * product
        sums.append((first / size, second / size))

    def slope(b, c, i, j):
        at = ((b * channels + c) * height + i) * width + j
        mean, scale = found[at // size]
        first, second = sums[at // size]
        z = (x[at] - mean) * scale
        return scale * (w[c] * dy[at] - first - z * second)

    every = list(range(channels))
    return (group_norm(arrays, shapes, groups) +
            _at_places(shapes[0], slope) +
            [Sample(every, dw), Sample(every, dbias)])


def _mean_pool(arrays, shapes, kernel):
    x = arrays[0]
    batch, channels, height, width = shapes[0]

    def value(b, c, i, j):
        plane = (b * channels + c) * height
        return math.fsum(
            x[(plane + kernel * i + p) * width + kernel * j + q]
            for p in range(kernel) for q in range(kernel)) / kernel**2

    return _at_places((batch, channels, height // kernel, width // kernel),
                      value)


def mean_pool_2x2(arrays, shapes):
    return _mean_pool(arrays, shapes, 2)


def mean_pool_8x8_vjp(arrays, shapes):
    dy = arrays[1]
    _, channels, height, width = shapes[0]

    def slope(b, c, i, j):
        plane = (b * channels + c) * (height // 8)
        return dy[(plane + i // 8) * (width // 8) + j // 8] / 64

    return _mean_pool(arrays, shapes, 8) + _at_places(shapes[0], slope)
