"""Functions of tensors that printed graphs call where PyTorch has no one op of
the primitive's meaning.

Each is made of ops that PyTorch batches and differentiates, forward and in
reverse, to any order: no in-place op, no op that depends on data. The printed
text calls them by the name of the primitive: `helpers.linear_scan(a, b, y0, 1,
False)`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

_FLOAT_BITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24,
               torch.float64: 53}
_NARROW = (torch.float16, torch.bfloat16, torch.float32)


def sym_min(*values):
    """The least of sizes, which may be symbolic."""
    least = values[0]
    for value in values[1:]:
        least = torch.sym_min(least, value)
    return least


def sym_max(*values):
    """The largest of sizes, which may be symbolic."""
    largest = values[0]
    for value in values[1:]:
        largest = torch.sym_max(largest, value)
    return largest


def broadcast(x, shape, axes):
    """Axis d of x becomes axes[d]; an extent 1 stretches."""
    for axis in range(len(shape)):
        if axis not in axes:
            x = x.unsqueeze(axis)
    return x.expand(shape)


def _lowest(dtype: torch.dtype):
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype: torch.dtype):
    return math.inf if dtype.is_floating_point else torch.iinfo(dtype).max


def _positions(x, axis: int):
    """0, 1, .. along the axis, shaped to broadcast against x."""
    shape = [1] * x.dim()
    shape[axis] = x.shape[axis]
    return torch.arange(x.shape[axis], device=x.device).reshape(shape)


def _shift(x, axis: int, steps: int, fill):
    """x moved by `steps` towards the end of the axis; `fill` comes in."""
    kept = x.narrow(axis, 0, x.shape[axis] - steps)
    shape = list(x.shape)
    shape[axis] = steps
    return torch.cat([x.new_full(shape, fill), kept], axis)


# ------------------------------------------------------------- pointwise --


def fma(a, b, c):
    """a b + c rounded once; of f64 the product is rounded, too."""
    if a.dtype in _NARROW:
        return (a.double() * b.double() + c.double()).to(a.dtype)
    return torch.addcmul(c, a, b)


def cbrt(x):
    """The cube root, of negative numbers, too."""
    wide = x.double()
    root = wide.abs().pow(1 / 3).copysign(wide)
    regular = (root != 0) & torch.isfinite(root)
    safe = torch.where(regular, root, 1.0)
    # One step of Newton's: pow is a few ulp off.
    root = torch.where(regular, root - (safe - wide / (safe * safe)) / 3, root)
    return root.to(x.dtype)


def shift_left(x, amount):
    """Amounts outside of the width shift everything out."""
    bits = torch.iinfo(x.dtype).bits
    out = (amount < 0) | (amount >= bits)
    shifted = torch.bitwise_left_shift(x, torch.where(out, 0, amount))
    return torch.where(out, 0, shifted)


def shift_right(x, amount):
    """The sign fills."""
    bits = torch.iinfo(x.dtype).bits
    out = (amount < 0) | (amount >= bits)
    return torch.bitwise_right_shift(x, torch.where(out, bits - 1, amount))


def ldexp(x, i):
    """x 2^i rounded once, for every i of i32."""
    half = torch.div(i, 2, rounding_mode="floor")
    wide = x.double()
    for step in (half, i - half):
        # The factor is a normal number, whatever the step.
        for part in (torch.clamp(step, -1022, 1023),
                     torch.clamp(step - torch.clamp(step, -1022, 1023), -1022,
                                 1023)):
            wide = wide * torch.exp2(part.double())
    return wide.to(x.dtype)


def to_integer(x, dtype: torch.dtype):
    """Truncates, saturates, and gives 0 for NaN."""
    info = torch.iinfo(dtype)
    low, high = float(info.min), float(info.max) + 1
    wide = x.detach().double()
    above, below = wide >= high, wide <= low
    inside = ~(above | below | torch.isnan(wide))
    whole = torch.where(inside, wide, 0.0).to(dtype)
    whole = torch.where(above, torch.full_like(whole, info.max), whole)
    return torch.where(below, torch.full_like(whole, info.min), whole)


def first_max(a, b):
    """The larger; where both are equal the derivative goes to a."""
    return torch.where((a >= b) | torch.isnan(a), a, b)


def first_min(a, b):
    """The smaller; where both are equal the derivative goes to a."""
    return torch.where((a <= b) | torch.isnan(a), a, b)


def bitcast(x, dtype: torch.dtype):
    """The same bits."""
    return x.detach().view(dtype)


# -------------------------------------------------------------- movement --


def pad(x, fill, low, high, interior):
    """Interior fills between neighbours, then `low` and `high` at the ends,
    which crop where they are negative. `fill` is a number or a 0-d tensor."""
    if isinstance(fill, torch.Tensor):
        ones = torch.ones_like(x, dtype=torch.bool)
        inside = pad(ones, False, low, high, interior)
        return torch.where(inside, pad(x, 0, low, high, interior), fill)
    for axis, between in enumerate(interior):
        if isinstance(between, int) and between == 0 or x.shape[axis] == 0:
            continue
        extent = x.shape[axis]
        widths = _widths(x.dim() + 1, axis + 1, between)
        x = F.pad(x.unsqueeze(axis + 1), widths, value=fill)
        x = x.flatten(axis, axis + 1)
        x = x.narrow(axis, 0, (extent - 1) * (between + 1) + 1)
    widths = []
    crops = []
    for axis in reversed(range(x.dim())):
        ends = [low[axis], high[axis]]
        if all(isinstance(end, int) for end in ends) and min(ends) < 0 < max(
                ends):
            # The fill of one end may be cropped from the other.
            crops += [min(end, 0) for end in ends]
            ends = [max(end, 0) for end in ends]
        else:
            crops += [0, 0]
        widths += ends
    if not x.dim():
        return x
    x = F.pad(x, widths, value=fill)
    return F.pad(x, crops) if any(crops) else x


def _widths(rank: int, axis: int, high):
    widths = [0, 0] * rank
    widths[2 * (rank - 1 - axis) + 1] = high
    return widths


def _window_places(x, extent, size, stride, dilation, low, count):
    """For one axis: where each window reads, and which of that is inside."""
    starts = torch.arange(count, device=x.device) * stride - low
    places = starts[:, None] + torch.arange(size, device=x.device) * dilation
    inside = (places >= 0) & (places < extent)
    return torch.where(inside, places, 0).reshape(-1), inside


def windows(x, fill, sizes, strides, dilations, low, counts):
    """Result [B.., counts.., sizes..]: element (p, k) is x at p stride +
    k dilation - low."""
    spatial = len(sizes)
    batch = x.dim() - spatial
    whole = None
    for d in range(spatial):
        axis = batch + 2 * d
        extent = x.shape[axis]
        places, inside = _window_places(x, extent, sizes[d], strides[d],
                                        dilations[d], low[d], counts[d])
        if isinstance(extent, int) and extent == 0:
            shape = list(x.shape)
            shape[axis] = 1
            x = x.new_zeros(shape)
        x = x.index_select(axis, places)
        x = x.unflatten(axis, (counts[d], sizes[d]))
        shape = [1] * (2 * spatial)
        shape[2 * d], shape[2 * d + 1] = counts[d], sizes[d]
        inside = inside.reshape(shape)
        whole = inside if whole is None else whole & inside
    if whole is not None:
        x = torch.where(whole, x, fill)
    order = list(range(batch)) + [batch + 2 * d for d in range(spatial)] \
        + [batch + 2 * d + 1 for d in range(spatial)]
    return x.permute(order)


def windows_add(u, sizes, strides, dilations, low, counts, shape):
    """The transpose of `windows`: each element is added where it was read."""
    spatial = len(sizes)
    batch = u.dim() - 2 * spatial
    order = list(range(batch))
    for d in range(spatial):
        order += [batch + d, batch + spatial + d]
    u = u.permute(order)
    for d in range(spatial):
        axis = batch + d
        places, inside = _window_places(u, shape[d], sizes[d], strides[d],
                                        dilations[d], low[d], counts[d])
        mask = [1] * u.dim()
        mask[axis], mask[axis + 1] = counts[d], sizes[d]
        zero = torch.zeros((), dtype=u.dtype, device=u.device)
        u = torch.where(inside.reshape(mask), u, zero).flatten(axis, axis + 1)
        extents = list(u.shape)
        extents[axis] = shape[d]
        sums = torch.zeros(extents, dtype=u.dtype, device=u.device)
        if not (isinstance(shape[d], int) and shape[d] == 0):
            sums = sums.index_add(axis, places, u)
        u = sums
    return u


# ------------------------------------------------------------ reductions --


def _merged(x, axes):
    """x with the axes behind the others, as one."""
    kept = [d for d in range(x.dim()) if d not in axes]
    x = x.permute(kept + list(axes))
    return x.flatten(len(kept)) if axes else x.unsqueeze(-1)


def _empty(x, axes) -> bool:
    return any(isinstance(x.shape[d], int) and x.shape[d] == 0 for d in axes)


def _full_result(x, axes, value):
    shape = [n for d, n in enumerate(x.shape) if d not in axes]
    return torch.full(shape, value, dtype=x.dtype, device=x.device)


def reduce_prod(x, axes):
    """The product by halves, whose derivatives need no quotient."""
    dtype = x.dtype
    if dtype in _NARROW:
        x = x.double()
    x = _merged(x, axes)
    if x.shape[-1] == 0:
        return x.new_ones(x.shape[:-1]).to(dtype)
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        rest = x.narrow(-1, 2 * half, x.shape[-1] - 2 * half)
        x = torch.cat([x.narrow(-1, 0, half) * x.narrow(-1, half, half), rest],
                      -1)
    return x.squeeze(-1).to(dtype)


def reduce_max(x, axes, tie):
    """`even` shares the derivative among equals; `first` gives it to one."""
    if not axes:
        return x
    if _empty(x, axes):
        return _full_result(x, axes, _lowest(x.dtype))
    if tie == "first":
        return _at_place(x, axes, torch.argmax)
    return torch.amax(x, axes)


def reduce_min(x, axes, tie):
    """As reduce_max."""
    if not axes:
        return x
    if _empty(x, axes):
        return _full_result(x, axes, _highest(x.dtype))
    if tie == "first":
        return _at_place(x, axes, torch.argmin)
    return torch.amin(x, axes)


def _at_place(x, axes, choose):
    x = _merged(x, axes)
    return x.gather(-1, choose(x.detach(), -1, keepdim=True)).squeeze(-1)


def reduce_all(x, axes):
    """Whether all are true."""
    for axis in reversed(axes):
        x = torch.all(x, axis)
    return x


def reduce_any(x, axes):
    """Whether any is true."""
    for axis in reversed(axes):
        x = torch.any(x, axis)
    return x


def argmax(x, axes):
    """The number of the first of the largest; -1 of nothing."""
    if _empty(x, axes):
        return _full_result(x, axes, 0).long() - 1
    return torch.argmax(_merged(x, axes), -1)


def argmin(x, axes):
    """The number of the first of the least; -1 of nothing."""
    if _empty(x, axes):
        return _full_result(x, axes, 0).long() - 1
    return torch.argmin(_merged(x, axes), -1)


# ---------------------------------------------------------- contractions --


def conv(x, w, stride, low, high, lhs_dilation, rhs_dilation, groups,
         batch_groups):
    """Correlation of x [N, C, S..] with w [O, C / groups, K..]."""
    spatial = x.dim() - 2
    if spatial == 0:
        return conv(x[..., None], w[..., None], [1], [0], [0], [1], [1], groups,
                    batch_groups).squeeze(-1)
    zeros = [0, 0]
    x = pad(x, 0, zeros + list(low), zeros + list(high),
            zeros + [d - 1 for d in lhs_dilation])
    if batch_groups > 1:
        n = x.shape[0] // batch_groups
        x = x.unflatten(0, (batch_groups, n)).transpose(0, 1).flatten(1, 2)
        groups = batch_groups
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], rhs_dilation)]
    if any(n < r for n, r in zip(x.shape[2:], reach)):
        shape = [x.shape[0], w.shape[0]] + [
            0 if n < r else (n - r) // s + 1
            for n, r, s in zip(x.shape[2:], reach, stride)]
        return x.new_zeros(shape)
    return torch.convolution(x, w, None, stride, [0] * spatial, rhs_dilation,
                             False, [0] * spatial, groups)
