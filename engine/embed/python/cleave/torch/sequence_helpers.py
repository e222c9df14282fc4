"""As helpers.py: scans, indexing, randomness and control flow.

A scan along an axis of n elements takes log2(n) steps on all of it. The number
of steps is part of the program: where sizes are symbolic, each power of two has
its own.
"""

from __future__ import annotations

import math

import torch
from torch._C import _functorch

from cleave.torch.helpers import (_NARROW, _FLOAT_BITS, _highest, _lowest,
                                  _positions, _shift)

# ----------------------------------------------------------------- scans --


def linear_scan(a, b, init, axis: int, reverse: bool):
    """y_i = a_i y_(i-1) + b_i with `init` before the first."""
    dtype = b.dtype
    if dtype in _NARROW:
        a, b, init = a.double(), b.double(), init.double()
    if b.shape[axis] == 0:
        return b.to(dtype)
    if reverse:
        a, b = a.flip(axis), b.flip(axis)
    n = b.shape[axis]
    b = torch.cat([a.narrow(axis, 0, 1) * init.unsqueeze(axis)
                   + b.narrow(axis, 0, 1), b.narrow(axis, 1, n - 1)], axis)
    # Elements before `step` are done; `a` has the factors of the others. An
    # element that is done is multiplied by nothing: 0 times an infinity would
    # be NaN.
    a = a.narrow(axis, 1, n - 1)
    step = 1
    while step < n:
        rest = n - step
        b = torch.cat([b.narrow(axis, 0, step), b.narrow(axis, step, rest)
                       + a * b.narrow(axis, 0, rest)], axis)
        if 2 * step < n:
            a = (a.narrow(axis, step, rest - step)
                 * a.narrow(axis, 0, rest - step))
        step *= 2
    if reverse:
        b = b.flip(axis)
    return b.to(dtype)


def cumulative_sum(x, axis: int, reverse: bool):
    """The linear_scan whose factors are 1."""
    dtype = x.dtype
    if dtype in _NARROW:
        x = x.double()
    if reverse:
        return torch.cumsum(x.flip(axis), axis).flip(axis).to(dtype)
    return torch.cumsum(x, axis, dtype=x.dtype).to(dtype)


def _running(x, axis: int, choose, fill):
    step = 1
    while step < x.shape[axis]:
        x = choose(x, _shift(x, axis, step, fill))
        step *= 2
    return x


def _cumulative_extremum(x, axis: int, reverse: bool, choose, fill):
    """Running extrema. The derivative is the mean over the equal elements that
    were met so far."""
    if reverse:
        flipped = x.flip(axis)
        return _cumulative_extremum(flipped, axis, False, choose,
                                    fill).flip(axis)
    if x.shape[axis] == 0:
        return x
    y = _running(x.detach(), axis, choose, fill)
    if not x.dtype.is_floating_point:
        return y
    taken = x.detach() == y
    place = _positions(x, axis).expand(x.shape)
    begins = (y != _shift(y, axis, 1, math.nan))
    start = _running(torch.where(begins, place, 0), axis, torch.maximum, 0)
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    # 0 with the derivative of x.
    delta = torch.where(taken & torch.isfinite(x), x - x.detach(), zero)

    def since_start(values):
        sums = torch.cumsum(values, axis)
        before = _shift(sums, axis, 1, 0)
        return sums - before.gather(axis, start)

    count = torch.clamp(since_start(taken.to(x.dtype).double()), min=1)
    return y + since_start(delta) / count.to(x.dtype)


def cumulative_max(x, axis: int, reverse: bool):
    """Running maxima; a NaN stays."""
    return _cumulative_extremum(x, axis, reverse, torch.maximum,
                                _lowest(x.dtype))


def cumulative_min(x, axis: int, reverse: bool):
    """Running minima; a NaN stays."""
    return _cumulative_extremum(x, axis, reverse, torch.minimum,
                                _highest(x.dtype))


def sort(x, axis: int, descending: bool):
    """Stable; NaN is the largest. Gives the values and their places."""
    if x.dtype == torch.bool:
        values, places = torch.sort(x.to(torch.uint8), axis, descending)
        return values.bool(), places
    values, places = torch.sort(x, stable=True, dim=axis, descending=descending)
    return values, places


# -------------------------------------------------------------- indexing --


def _places(index, extents):
    """The row-major number of each place of the last axis of `index`, and
    whether it is inside."""
    place, inside = None, None
    for k, extent in enumerate(extents):
        i = index.select(-1, k)
        within = (i >= 0) & (i < extent)
        i = torch.where(within, i, 0)
        place = i if place is None else place * extent + i
        inside = within if inside is None else inside & within
    if place is None:
        place = torch.zeros(index.shape[:-1], dtype=torch.int64,
                            device=index.device)
        inside = torch.ones_like(place, dtype=torch.bool)
    return place, inside


def _product(values):
    result = 1
    for value in values:
        result = result * value
    return result


def _batch_offsets(place, batch: int, inner):
    """`place` in the array whose batch axes and inner axis are one."""
    for d in range(batch):
        later = _product(place.shape[d + 1:batch]) * inner
        shape = [1] * place.dim()
        shape[d] = place.shape[d]
        rows = torch.arange(place.shape[d], device=place.device)
        place = place + rows.reshape(shape) * later
    return place


def gather(x, index, fill, axes, batch: int, mode: str):
    """Result [B.., I.., rest of x]: the rows of x at the places in `index`."""
    rest = [d for d in range(batch, x.dim()) if d not in axes]
    order = list(range(batch)) + list(axes) + rest
    extents = [x.shape[d] for d in axes]
    rest_shape = [x.shape[d] for d in rest]
    place, inside = _places(index, extents)
    rows = _product(x.shape[:batch]) * _product(extents)
    flat = x.permute(order).reshape([rows] + rest_shape)
    place = _batch_offsets(place, batch, _product(extents))
    if mode == "error":
        # PyTorch's own error for a place outside, as it has no such row.
        place = torch.where(inside, place, rows)
    elif isinstance(rows, int) and rows == 0:
        shape = list(place.shape) + rest_shape
        return (x.new_zeros(shape) if fill is None else
                torch.zeros(shape, dtype=x.dtype, device=x.device) + fill)
    result = flat.index_select(0, place.reshape(-1)) \
        .reshape(list(place.shape) + rest_shape)
    if mode == "error":
        return result
    inside = inside.reshape(list(inside.shape) + [1] * len(rest))
    return torch.where(inside, result, fill)


def scatter(x, index, updates, axes, batch: int, mode: str, tie: str):
    """x with the updates written at the places in `index`, in their order; what
    is out of range is dropped."""
    rest = [d for d in range(batch, x.dim()) if d not in axes]
    order = list(range(batch)) + list(axes) + rest
    extents = [x.shape[d] for d in axes]
    rest_shape = [x.shape[d] for d in rest]
    place, inside = _places(index, extents)
    rows = _product(x.shape[:batch]) * _product(extents)
    moved = x.permute(order)
    # One row more takes what is dropped.
    flat = moved.reshape([rows] + rest_shape)
    spare = torch.zeros([1] + rest_shape, dtype=x.dtype, device=x.device)
    flat = torch.cat([flat, spare])
    place = _batch_offsets(place, batch, _product(extents))
    place = torch.where(inside, place, rows).reshape(-1)
    updates = updates.reshape([place.shape[0]] + rest_shape)
    written = _WRITERS[mode](flat, place, updates, tie)
    result = written.narrow(0, 0, rows).reshape(moved.shape)
    inverse = [0] * len(order)
    for d, axis in enumerate(order):
        inverse[axis] = d
    return result.permute(inverse)


def _scatter_add(flat, place, updates, _):
    return flat.index_add(0, place, updates)


def _last_writers(rows, place, which):
    """For each row the number of the last update, of those that `which` marks,
    that goes there, or -1; one column per element."""
    numbers = torch.arange(place.shape[0], device=place.device)
    numbers = numbers.reshape([-1] + [1] * (which.dim() - 1))
    numbers = torch.where(which, numbers, -1)
    none = torch.full([rows] + list(which.shape[1:]), -1, dtype=torch.int64,
                      device=place.device)
    return _scatter_extremum(none, place, numbers, "amax")


def _scatter_extremum(flat, place, updates, reduce: str):
    at = place.reshape([-1] + [1] * (updates.dim() - 1)).expand(updates.shape)
    return torch.scatter_reduce(flat, 0, at, updates, reduce,
                                include_self=True)


def _choose(flat, updates, writer):
    """The row's own element where no update is its writer."""
    if updates.shape[0] == 0:
        return flat
    written = updates.gather(0, torch.clamp(writer, min=0))
    return torch.where(writer >= 0, written, flat)


def _scatter_set(flat, place, updates, _):
    all_of_them = torch.ones_like(updates, dtype=torch.bool)
    return _choose(flat, updates,
                   _last_writers(flat.shape[0], place, all_of_them))


def _scatter_mul(flat, place, updates, _):
    """By sorting the updates by place, and products within each place."""
    count = updates.shape[0]
    if count == 0:
        return flat
    ordered, permutation = torch.sort(place, stable=True)
    values = updates.index_select(0, permutation)
    shape = [-1] + [1] * (values.dim() - 1)
    step = 1
    while step < count:
        same = ordered == _shift(ordered, 0, step, -1)
        factor = torch.where(same.reshape(shape), _shift(values, 0, step, 1), 1)
        values = values * factor.to(values.dtype)
        step *= 2
    # The last of a place has the product of all.
    numbers = torch.arange(count, device=place.device)
    none = torch.full([flat.shape[0]], -1, dtype=torch.int64,
                      device=place.device)
    last = torch.scatter_reduce(none, 0, ordered, numbers, "amax",
                                include_self=True)
    product = values.index_select(0, torch.clamp(last, min=0))
    return torch.where((last >= 0).reshape(shape), flat * product, flat)


def _scatter_best(flat, place, updates, tie: str, reduce: str):
    if updates.shape[0] == 0:
        return flat
    best = _scatter_extremum(flat.detach(), place, updates.detach(), reduce)
    hit = updates == best.index_select(0, place)
    if tie == "first":
        # Numbered from the end, the last writer is the first.
        writer = _last_writers(flat.shape[0], place.flip(0), hit.flip(0))
        chosen = _choose(flat, updates.flip(0), writer)
        return torch.where(torch.isnan(best), best, chosen) \
            if best.dtype.is_floating_point else chosen
    if not flat.dtype.is_floating_point:
        return best
    zero = torch.zeros((), dtype=flat.dtype, device=flat.device)
    own = flat == best
    # 0, with the mean of the derivatives of all that are equal.
    delta = torch.where(own & torch.isfinite(flat), flat - flat.detach(), zero)
    moved = torch.where(hit & torch.isfinite(updates),
                        updates - updates.detach(), zero)
    count = own.to(flat.dtype).index_add(0, place, hit.to(flat.dtype))
    return best + delta.index_add(0, place, moved) / torch.clamp(count, min=1)


def _scatter_max(flat, place, updates, tie):
    return _scatter_best(flat, place, updates, tie, "amax")


def _scatter_min(flat, place, updates, tie):
    return _scatter_best(flat, place, updates, tie, "amin")


_WRITERS = {"add": _scatter_add, "set": _scatter_set, "mul": _scatter_mul,
            "max": _scatter_max, "min": _scatter_min}

# ------------------------------------------------------------- randomness --

_LOW = 0xFFFFFFFF


def _philox(counter, key):
    """Philox 4x32-10 in 64-bit integers: the low halves hold the words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (((b >> 32) & _LOW) ^ c1 ^ k0, b & _LOW,
                          ((a >> 32) & _LOW) ^ c3 ^ k1, a & _LOW)
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return c0, c1, c2, c3


def _words(key, stream: int, count):
    """The first `count` words of each key's stream, on a new last axis."""
    blocks = torch.arange((count + 3) // 4, device=key.device)
    key = key.unsqueeze(-1)
    zero = torch.zeros_like(blocks + key)
    words = _philox((blocks + zero, zero, zero + stream, zero),
                    ((key & _LOW) + zero, ((key >> 32) & _LOW) + zero))
    return torch.stack(words, -1).flatten(-2).narrow(-1, 0, count)


def _long_words(key, stream: int, count):
    words = _words(key, stream, 2 * count).unflatten(-1, (count, 2))
    return words.select(-1, 0) | (words.select(-1, 1) << 32)


def random_bits(key, shape, dtype: torch.dtype):
    """The bits of a block of this shape for each key."""
    count = _product(shape)
    if count == 0:
        return torch.zeros(list(key.shape) + list(shape), dtype=dtype,
                           device=key.device)
    if torch.iinfo(dtype).bits == 64:
        bits = _long_words(key, 0, count)
    else:
        bits = _words(key, 0, count)
    return bits.to(dtype).reshape(list(key.shape) + list(shape))


def random_uniform(key, shape, dtype: torch.dtype):
    """Numbers in [0, 1), each multiple of 2^-bits equally often."""
    count = _product(shape)
    bits = _FLOAT_BITS[dtype]
    if count == 0:
        number = torch.zeros(list(key.shape) + [0], device=key.device)
    elif bits > 32:
        number = (_long_words(key, 0, count) >> (64 - bits)) & (2**bits - 1)
    else:
        number = _words(key, 0, count) >> (32 - bits)
    return (number.double() * 2.0**-bits).to(dtype).reshape(
        list(key.shape) + list(shape))


def random_split(key, count):
    """`count` keys from each."""
    return _long_words(key, 1, count)


def random_fold_in(key, i):
    """The key that the number picks."""
    zero = torch.zeros_like(key)
    words = _philox((i & _LOW, (i >> 32) & _LOW, zero + 2, zero),
                    (key & _LOW, (key >> 32) & _LOW))
    return words[0] | (words[1] << 32)


# ---------------------------------------------------------------- control --


def scan(body, consts, carries, xs, length, reverse: bool):
    """The body once for each slice; the carries, then what each step gave,
    stacked by `stack`."""
    steps = range(length)
    results: list = []
    for i in reversed(steps) if reverse else steps:
        outputs = body(*consts, *carries, *(x.select(0, i) for x in xs))
        carries = outputs[:len(carries)]
        results.append(outputs[len(carries):])
    if reverse:
        results.reverse()
    return carries, results


def stack(results, k: int, shape, dtype, device):
    """Output k of every step, or nothing of this shape."""
    if not results:
        return torch.zeros([0] + list(shape), dtype=dtype, device=device)
    return torch.stack([outputs[k] for outputs in results])


def _truths(predicate) -> tuple[bool, bool]:
    """Whether it holds for any and for all examples of the vmaps around it."""
    while _functorch.is_functorch_wrapped_tensor(predicate):
        predicate = _functorch.get_unwrapped(predicate)
    return bool(predicate.any()), bool(predicate.all())


def cond(predicate, then, otherwise, operands):
    """The one branch that the predicate chooses. Under torch.compile and export
    it stays a branch. Under vmap, where examples choose differently, both
    run."""
    if torch.compiler.is_compiling():
        return torch.cond(predicate, then, otherwise, tuple(operands))
    some, every = _truths(predicate)
    if every or not some:
        return then(*operands) if every else otherwise(*operands)
    return tuple(torch.where(predicate, a, b) for a, b in
                 zip(then(*operands), otherwise(*operands)))


def while_loop(condition, body, consts, carries, limit):
    """The body as long as the condition holds; RuntimeError beyond `limit`.
    Under vmap it goes on until no example continues, and those that have ended
    keep their carries."""
    steps = 0
    while True:
        going = condition(*consts, *carries)[0]
        some, every = _truths(going)
        if not some:
            return tuple(carries)
        if limit is not None and steps >= limit:
            raise RuntimeError(f"while: it holds still after {limit} steps")
        moved = body(*consts, *carries)
        carries = moved if every else tuple(
            torch.where(going, a, b) for a, b in zip(moved, carries))
        steps += 1
