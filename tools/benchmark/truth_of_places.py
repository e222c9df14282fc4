"""What functions of functions.rules that read elements at other places, or one
after the other, are in double precision, with their gradients. As in truth.py,
some elements of each result are computed; the last input of a gradient is the
cotangent of the result.
"""

import itertools
import math

from truth import Sample
from truth_of_blocks import _at_places, distances


def _taps(n, place):
    """Elements and weights that the place of twice as many points reads."""
    t = min(max((place + 0.5) / 2 - 0.5, 0), n - 1)
    first = math.floor(t)
    return ((first, 1 - (t - first)), (min(first + 1, n - 1), t - first))


def bilinear_twice(arrays, shapes):
    x, = arrays[:1]
    batch, channels, height, width = shapes[0]

    def value(b, c, i, j):
        plane = (b * channels + c) * height
        return math.fsum(v * w * x[(plane + h) * width + k]
                         for h, v in _taps(height, i)
                         for k, w in _taps(width, j))

    return _at_places((batch, channels, 2 * height, 2 * width), value)


def bilinear_twice_vjp(arrays, shapes):
    dy = arrays[1]
    batch, channels, height, width = shapes[0]

    def readers(n, place):
        """Points that read an element, and their weights."""
        near = range(max(2 * place - 3, 0), min(2 * place + 5, 2 * n))
        for p in near:
            weight = sum(w for at, w in _taps(n, p) if at == place)
            if weight:
                yield p, weight

    def value(b, c, h, k):
        plane = (b * channels + c) * 2 * height
        return math.fsum(v * w * dy[(plane + i) * 2 * width + j]
                         for i, v in readers(height, h)
                         for j, w in readers(width, k))

    return bilinear_twice(arrays, shapes) + _at_places(shapes[0], value)


def convolution(arrays, shapes):
    """Over any number of axes, with zeros around that keep the extents."""
    x, w = arrays
    batch, channels, *extents = shapes[0]
    outputs, _, *sizes = shapes[1]
    taps = list(itertools.product(*map(range, sizes)))

    def value(b, o, *at):
        terms = []
        for number, tap in enumerate(taps):
            read = [i + t - s // 2 for i, t, s in zip(at, tap, sizes)]
            if not all(0 <= i < n for i, n in zip(read, extents)):
                continue
            for c in range(channels):
                place = b * channels + c
                for i, n in zip(read, extents):
                    place = place * n + i
                terms.append(
                    x[place] * w[(o * channels + c) * len(taps) + number])
        return math.fsum(terms)

    return _at_places((batch, outputs, *extents), value)


def embedding_rows_vjp(arrays, shapes):
    """The rows, and the cotangent of the table."""
    w, ids, dy = arrays
    words, width = shapes[0]
    readers = {}
    for b in range(shapes[1][0]):
        readers.setdefault(ids[b], []).append(b)
    result = _at_places(shapes[2], lambda b, d: w[ids[b] * width + d])
    return result + _at_places(
        (words, width),
        lambda v, d: math.fsum(dy[b * width + d] for b in readers.get(v, ())))


def roll_rows(arrays, shapes):
    rows, columns = shapes[0]
    return _at_places(
        (rows, columns), lambda r, c: arrays[0][(r - 100) % rows * columns +
                                                (c - 100) % columns])


def roll_rows_vjp(arrays, shapes):
    rows, columns = shapes[0]
    return roll_rows(arrays, shapes) + _at_places(
        (rows, columns), lambda r, c: arrays[1][(r + 100) % rows * columns +
                                                (c + 100) % columns])


def distances_vjp(arrays, shapes):
    x, z, dy = arrays
    (count, width), (others, _) = shapes[:2]

    def sums(a, b, along, of, step):
        """The gradient of a: row p of dy begins at `step` times p."""
        sample = Sample([], [])
        for p in sorted({0, along - 1}):
            row = a[p * width:(p + 1) * width]
            total = [[] for _ in range(width)]
            for r in range(of):
                d = [s - t for s, t in zip(row, b[r * width:(r + 1) * width])]
                size = math.sqrt(math.fsum(v * v for v in d))
                g = dy[p * step[0] + r * step[1]]
                if size > 0:
                    for m, v in enumerate(d):
                        total[m].append(g * v / size)
            sample.indices.extend(range(p * width, (p + 1) * width))
            sample.values.extend(map(math.fsum, total))
        return sample

    return distances(arrays[:2], shapes[:2]) + [
        sums(x, z, count, others, (others, 1)),
        sums(z, x, others, count, (1, others))
    ]


def _rows(shape, of_row):
    """`of_row(number of the row)` for the first and the last row."""
    count, width = shape
    sample = Sample([], [])
    for r in sorted({0, count - 1}):
        sample.indices.extend(range(r * width, (r + 1) * width))
        sample.values.extend(of_row(r))
    return [sample]


def cumprod_rows(arrays, shapes):
    width = shapes[0][1]
    return _rows(
        shapes[0], lambda r: itertools.accumulate(
            arrays[0][r * width:(r + 1) * width], lambda a, b: a * b))


def logcumsumexp_rows(arrays, shapes):
    width = shapes[0][1]

    def of_row(r):
        row = arrays[0][r * width:(r + 1) * width]
        return map(math.log, itertools.accumulate(map(math.exp, row)))

    return _rows(shapes[0], of_row)


def lgamma_all(arrays, shapes):
    return _at_places(
        shapes[0], lambda r, c: math.lgamma(arrays[0][r * shapes[0][1] + c]))


def _digamma(x):
    steps = 0.0
    while x < 20:
        steps += 1 / x
        x += 1
    z = 1 / (x * x)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z / 240)))
    return math.log(x) - 0.5 / x - series - steps


def lgamma_all_vjp(arrays, shapes):
    x, dy = arrays
    width = shapes[0][1]
    return lgamma_all(arrays[:1], shapes[:1]) + _at_places(
        shapes[0], lambda r, c: dy[r * width + c] * _digamma(x[r * width + c]))


def top_rows_vjp(arrays, shapes):
    """All of some rows: each cotangent lies where its element was."""
    x, dy = arrays
    count, width = shapes[0]
    k = shapes[1][1]
    top, slope = Sample([], []), Sample([], [])
    for r in sorted({0, count - 1}):
        row = x[r * width:(r + 1) * width]
        order = sorted(range(width), key=lambda i: (-row[i], i))[:k]
        gradient = [0.0] * width
        for j, i in enumerate(order):
            gradient[i] += dy[r * k + j]
        top.indices.extend(range(r * k, (r + 1) * k))
        top.values.extend(row[i] for i in order)
        slope.indices.extend(range(r * width, (r + 1) * width))
        slope.values.extend(gradient)
    return [top, slope]
