"""What the gradients of functions of functions.rules are, and what they are
trained by, in double precision. As in truth.py, some elements of each result
are computed; the last input is the cotangent of the result.
"""

import itertools
import math
import operator

import truth
from truth import Sample
from truth_of_blocks import _at_places, _sigmoid


def _dot(a, b):
    return sum(map(operator.mul, a, b))


def _at(value, size):
    """A Sample of `value(index)` at all indices."""
    return Sample(list(range(size)), [value(i) for i in range(size)])


softmax_vjp = truth._by_rows(lambda x, dy: _softmax_vjp(x, dy))


def _softmax_vjp(x, dy):
    y = truth._softmax(x)
    mean = math.fsum(map(operator.mul, y, dy))
    return y, [v * (d - mean) for v, d in zip(y, dy)]


def layer_norm_vjp(arrays, shapes):
    x, w, bias, dy = arrays
    count, width = shapes[0]
    y = truth.layer_norm(arrays[:3], shapes[:3])
    dx = Sample([], [])
    dw, dbias = [0.0] * width, [0.0] * width
    rows = set(y[0].indices[::width])
    for r in range(count):
        row = x[r * width:(r + 1) * width]
        d = dy[r * width:(r + 1) * width]
        mean = math.fsum(row) / width
        centred = [v - mean for v in row]
        scale = 1 / math.sqrt(
            math.fsum(map(operator.mul, centred, centred)) / width + 1e-5)
        z = [v * scale for v in centred]
        dw = list(map(operator.add, dw, map(operator.mul, d, z)))
        dbias = list(map(operator.add, dbias, d))
        if r * width not in rows:
            continue
        dz = list(map(operator.mul, d, w))
        first = math.fsum(dz) / width
        second = math.fsum(map(operator.mul, dz, z)) / width
        dx.indices.extend(range(r * width, (r + 1) * width))
        dx.values.extend(scale * (g - first - v * second)
                         for g, v in zip(dz, z))
    return [
        *y, dx,
        _at(dw.__getitem__, width),
        _at(dbias.__getitem__, width)
    ]


def cross_entropy_vjp(arrays, shapes):
    x, target, dy = arrays
    count, width = shapes[0]
    dx = Sample([], [])
    for r in truth._rows(count):
        y = truth._softmax(x[r * width:(r + 1) * width])
        y[target[r]] -= 1
        dx.indices.extend(range(r * width, (r + 1) * width))
        dx.values.extend(v * dy[0] / count for v in y)
    return truth.cross_entropy_mean(arrays[:2], shapes[:2]) + [dx]


def _gelu_slope(x):
    return (math.erfc(-x / math.sqrt(2)) / 2 +
            x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def gelu_vjp(arrays, shapes):
    y, = truth.gelu(arrays[:1], shapes[:1])
    x, dy = arrays
    return [
        y,
        Sample(y.indices, [dy[i] * _gelu_slope(x[i]) for i in y.indices])
    ]


def linear_gelu_vjp(arrays, shapes):
    x, w, bias, dy = arrays
    (count, depth), (columns, _) = shapes[:2]

    def z(b, o):
        return _dot(x[b * depth:(b + 1) * depth],
                    w[o * depth:(o + 1) * depth]) + bias[o]

    def dz(b, o):
        return dy[b * columns + o] * _gelu_slope(z(b, o))

    some = sorted({0, columns // 3, columns - 1})
    gradients = {o: [dz(b, o) for b in range(count)] for o in some}
    dx = Sample([], [])
    for b in sorted({0, count - 1}):
        row = [dz(b, o) for o in range(columns)]
        for i in range(depth):
            dx.indices.append(b * depth + i)
            dx.values.append(_dot(row, w[i::depth]))
    dw = Sample([], [])
    for o in some:
        for i in sorted({0, depth // 2, depth - 1}):
            dw.indices.append(o * depth + i)
            dw.values.append(_dot(gradients[o], x[i::depth]))
    return [
        *truth.linear_gelu(arrays[:3], shapes[:3]), dx, dw,
        Sample(some, [math.fsum(gradients[o]) for o in some])
    ]


def _rows(array, shape):
    return [list(array[i * shape[1]:(i + 1) * shape[1]])
            for i in range(shape[0])]


def _product(a, b):
    """Of matrices, as lists of rows."""
    columns = list(zip(*b))
    return [[_dot(row, column) for column in columns] for row in a]


def _each(function, *matrices):
    return [[function(*at) for at in zip(*rows)] for rows in zip(*matrices)]


def _plus(a, b):
    return _each(operator.add, a, b)


def _transposed(a):
    return [list(column) for column in zip(*a)]


def _network_gradients(values, tangents, some):
    """Slopes of the weights of squared_network at some rows of each, and their
    tangents."""
    factor = 0.06
    x, v, w = values
    tx, tv, tw = tangents
    by_v = _product(x, v)
    h = _each(lambda z: math.tanh(factor * z), by_v)
    th = _each(lambda h, t: (1 - h * h) * factor * t, h,
               _plus(_product(tx, v), _product(x, tv)))
    y = _each(lambda z: math.tanh(factor * z), _product(h, w))
    ty = _each(lambda y, t: (1 - y * y) * factor * t, y,
               _plus(_product(th, w), _product(h, tw)))
    dz = _each(lambda y: 2 * y * (1 - y * y) * factor, y)
    tdz = _each(lambda y, t: 2 * t * (1 - 3 * y * y) * factor, y, ty)
    back = _transposed(w)
    dh = _product(dz, back)
    tdh = _plus(_product(tdz, back), _product(dz, _transposed(tw)))
    du = _each(lambda h, d: d * (1 - h * h) * factor, h, dh)
    tdu = _each(lambda h, t, d, td: (td * (1 - h * h) - 2 * h * t * d) *
                factor, h, th, dh, tdh)

    def slopes(rows, a, b):
        return _product([a[i] for i in rows], b)

    xt, txt, ht, tht = map(_transposed, (x, tx, h, th))
    of_v, of_w = some
    return ((slopes(of_v, xt, du), slopes(of_w, ht, dz)),
            (_plus(slopes(of_v, txt, du), slopes(of_v, xt, tdu)),
             _plus(slopes(of_w, tht, dz), slopes(of_w, ht, tdz))))


def _network(arrays, shapes):
    values = [_rows(a, shape) for a, shape in zip(arrays, shapes)]
    tangents = values[3:] or [
        [[0.0] * shape[1]] * shape[0] for shape in shapes[:3]]
    some = [sorted({0, rows // 3, rows - 1}) for rows, _ in shapes[1:3]]
    return [
        [Sample([i * len(rows[0]) + j for i in picked
                 for j in range(len(rows[0]))],
                [e for row in rows for e in row])
         for picked, rows in zip(some, found)]
        for found in _network_gradients(values[:3], tangents, some)
    ]


def network_gradients(arrays, shapes):
    return _network(arrays, shapes)[0]


def network_gradients_jvp(arrays, shapes):
    slopes, tangents = _network(arrays, shapes)
    return slopes + tangents


def max_pool_3x3_vjp(arrays, shapes):
    x, dy = arrays
    batch, channels, height, width = shapes[0]
    rows, columns = shapes[1][2:]

    def window(b, c, i, j):
        base = (b * channels + c) * height
        return [(x[(base + s) * width + t], s, t)
                for s in range(max(0, 2 * i - 1), min(height, 2 * i + 2))
                for t in range(max(0, 2 * j - 1), min(width, 2 * j + 2))]

    def largest(b, c, i, j):
        return max(window(b, c, i, j), key=lambda one: one[0])

    def dx(b, c, s, t):
        total = 0.0
        for i, j in itertools.product(range(s // 2, (s + 1) // 2 + 1),
                                      range(t // 2, (t + 1) // 2 + 1)):
            if i < rows and j < columns and largest(b, c, i, j)[1:] == (s, t):
                total += dy[((b * channels + c) * rows + i) * columns + j]
        return total

    return (_at_places(shapes[1], lambda *at: largest(*at)[0]) +
            _at_places(shapes[0], dx))


def _attention_vjp(is_causal):
    """Rows of each head, and the keys and values of some of the last one."""

    def sample(arrays, shapes):
        q, k, v, dy = arrays
        batch, heads, length, width = shapes[0]
        scale = 1 / math.sqrt(width)
        y, dq, dk, dv = (Sample([], []) for _ in range(4))

        def row(array, h, i):
            first = (h * length + i) * width
            return array[first:first + width]

        def weights(h, i):
            """Those of row i, and the cotangents of its scores."""
            query, cotangent = row(q, h, i), row(dy, h, i)
            seen = range(i + 1 if is_causal else length)
            p = truth._softmax(
                [_dot(query, row(k, h, j)) * scale for j in seen])
            dp = [_dot(cotangent, row(v, h, j)) for j in seen]
            mean = _dot(p, dp)
            ds = [a * (b - mean) * scale for a, b in zip(p, dp)]
            rest = [0.0] * (length - len(p))
            return p + rest, ds + rest

        def add(sample, h, i, values):
            first = (h * length + i) * width
            sample.indices.extend(range(first, first + width))
            sample.values.extend(values)

        def sum_of(factors, array, h):
            rows = [row(array, h, j) for j in range(length)]
            return [_dot(factors, [r[e] for r in rows]) for e in range(width)]

        last = batch * heads - 1
        for h in range(batch * heads):
            for i in sorted({0, length - 1}):
                p, ds = weights(h, i)
                add(y, h, i, sum_of(p, v, h))
                add(dq, h, i, sum_of(ds, k, h))
        rows = [weights(last, i) for i in range(length)]
        for j in sorted({0, length // 3, length - 1}):
            add(dv, last, j, sum_of([p[j] for p, _ in rows], dy, last))
            add(dk, last, j, sum_of([ds[j] for _, ds in rows], q, last))
        return [y, dq, dk, dv]

    return sample


attention_vjp = _attention_vjp(False)
attention_causal_vjp = _attention_vjp(True)


def lstm_vjp(arrays, shapes):
    """All of it."""
    xs, h0, c0, wx, wh, bias, dy = arrays
    length, batch, width = shapes[0]
    hidden = shapes[1][1]
    gates = 4 * hidden
    rows = [list(wx[g * width:(g + 1) * width]) + list(
        wh[g * hidden:(g + 1) * hidden]) for g in range(gates)]
    columns = list(zip(*rows))
    y = [0.0] * len(dy)
    dxs, dh0, dc0 = [0.0] * len(xs), [0.0] * len(h0), [0.0] * len(c0)
    dw = [[0.0] * (width + hidden) for _ in range(gates)]
    dbias = [0.0] * gates
    for b in range(batch):
        h = list(h0[b * hidden:(b + 1) * hidden])
        c = list(c0[b * hidden:(b + 1) * hidden])
        steps = []
        for t in range(length):
            first = (t * batch + b) * width
            x = list(xs[first:first + width]) + h
            g = [_dot(x, row) + one for row, one in zip(rows, bias)]
            i = list(map(_sigmoid, g[:hidden]))
            f = list(map(_sigmoid, g[hidden:2 * hidden]))
            n = list(map(math.tanh, g[2 * hidden:3 * hidden]))
            o = list(map(_sigmoid, g[3 * hidden:]))
            old = c
            c = [f[k] * c[k] + i[k] * n[k] for k in range(hidden)]
            u = list(map(math.tanh, c))
            h = list(map(operator.mul, o, u))
            steps.append((x, i, f, n, o, old, u))
            first = (t * batch + b) * hidden
            y[first:first + hidden] = h
        dh, dc = [0.0] * hidden, [0.0] * hidden
        for t in reversed(range(length)):
            x, i, f, n, o, old, u = steps[t]
            first = (t * batch + b) * hidden
            dh = list(map(operator.add, dh, dy[first:first + hidden]))
            dc = [dc[k] + dh[k] * o[k] * (1 - u[k]**2) for k in range(hidden)]
            each = range(hidden)
            dg = ([dc[k] * n[k] * i[k] * (1 - i[k]) for k in each] +
                  [dc[k] * old[k] * f[k] * (1 - f[k]) for k in each] +
                  [dc[k] * i[k] * (1 - n[k]**2) for k in each] +
                  [dh[k] * u[k] * o[k] * (1 - o[k]) for k in each])
            for row, d in zip(dw, dg):
                row[:] = [old + d * new for old, new in zip(row, x)]
            dbias = list(map(operator.add, dbias, dg))
            dx = [_dot(dg, column) for column in columns]
            first = (t * batch + b) * width
            dxs[first:first + width] = dx[:width]
            dh = dx[width:]
            dc = list(map(operator.mul, dc, f))
        dh0[b * hidden:(b + 1) * hidden] = dh
        dc0[b * hidden:(b + 1) * hidden] = dc
    dwx = list(itertools.chain(*(row[:width] for row in dw)))
    dwh = list(itertools.chain(*(row[width:] for row in dw)))
    return [
        _at(values.__getitem__, len(values))
        for values in (y, dxs, dh0, dc0, dwx, dwh, dbias)
    ]


def convolution_transposed(arrays, shapes):
    x, w = arrays
    _, channels, height, width = shapes[0]
    _, outputs, size, _ = shapes[1]

    def value(b, o, p, q):
        terms = []
        for i, j in itertools.product(range(size), range(size)):
            s, t = p + 1 - i, q + 1 - j
            if s % 2 or t % 2 or not (0 <= s < 2 * height and
                                      0 <= t < 2 * width):
                continue
            terms.extend(
                x[((b * channels + c) * height + s // 2) * width + t // 2] *
                w[((c * outputs + o) * size + i) * size + j]
                for c in range(channels))
        return math.fsum(terms)

    return _at_places((shapes[0][0], outputs, 2 * height, 2 * width), value)


def linear_of_heads(arrays, shapes):
    o, w = arrays
    batch, heads, length, width = shapes[0]

    def value(b, s, n):
        total = []
        for h in range(heads):
            first = ((b * heads + h) * length + s) * width
            weights = (n * heads + h) * width
            total.append(_dot(o[first:first + width],
                              w[weights:weights + width]))
        return math.fsum(total)

    return _at_places((batch, length, shapes[1][0]), value)


def layer_norm_of_one(arrays, shapes):
    return truth.layer_norm(arrays, [shapes[0][1:], *shapes[1:]])


def _adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.1) / (math.sqrt(v / 0.001) + 1e-8), m, v


def adam_step(arrays, shapes):
    size = len(arrays[0])
    indices = sorted({*range(0, size, 101 if size > 10000 else 1), size - 1})
    results = [_adam(*(a[i] for a in arrays)) for i in indices]
    return [Sample(indices, list(values)) for values in zip(*results)]


def selective_scan(arrays, shapes):
    """All steps of the first and the last channel."""
    x, step, a, b, c = arrays
    length, width = shapes[0]
    states = shapes[2][1]
    sample = Sample([], [])
    for i in sorted({0, width - 1}):
        state = [0.0] * states
        for t in range(length):
            d = step[t * width + i]
            state = [
                math.exp(d * a[i * states + n]) * state[n] +
                d * b[t * states + n] * x[t * width + i]
                for n in range(states)
            ]
            sample.indices.append(t * width + i)
            sample.values.append(_dot(state, c[t * states:(t + 1) * states]))
    return [sample]
