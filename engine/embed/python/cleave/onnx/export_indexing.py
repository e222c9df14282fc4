"""Windows, gathers, scatters and sorts as ONNX's ops.

Where a primitive reads a fill, or drops a write, out of range, ONNX reports an
error: such places are led to elements that are put beside the others first.
"""

from __future__ import annotations

from .size import maximum


def _steps(w, count, step: int) -> str:
    """0, step, 2 step, .."""
    if isinstance(count, int):
        return w.integers(step * i for i in range(count))
    row = w.add("Range", [w.size(0), w.size(count), w.size(1)])
    return w.add("Mul", [row, w.integers([step])])


def _places(w, count, stride, size, dilation, offset) -> str:
    """p stride + k dilation + offset, for each p < count and k < size."""
    rows = w.shaped(_steps(w, count, stride), [count, 1])
    columns = w.shaped(_steps(w, size, dilation), [1, size])
    return w.add("Add", [w.add("Add", [rows, columns]), w.size(offset)])


def _window_attributes(a):
    return zip(a.sizes("counts"), a.integers("strides"), a.sizes("sizes"),
               a.integers("dilations"), a.sizes("low"))


def windows(w, a, x, given, gives):
    from .export_ops import padded
    shape = list(given[0][1])
    lead = len(shape) - len(a.sizes("sizes"))
    name = x[0]
    before, after, indices = [0] * lead, [0] * lead, []
    for d, (count, stride, size, dilation, low) in enumerate(
            _window_attributes(a), lead):
        front = maximum(low, 0)
        last = (count - 1) * stride + (size - 1) * dilation - low
        before.append(front)
        after.append(maximum(last + 1 - shape[d], 0))
        indices.append(_places(w, count, stride, size, dilation, front - low))
    name = padded(w, name, x[1], before, after)
    for d, index in enumerate(indices):
        name = w.add("Gather", [name, index], axis=lead + 2 * d)
    number = len(indices)
    order = list(range(lead)) + [lead + 2 * d for d in range(number)] + [
        lead + 2 * d + 1 for d in range(number)]
    return w.add("Transpose", [name], perm=order)


def windows_add(w, a, x, given, gives):
    dtype, shape = gives[0]
    number = len(a.sizes("sizes"))
    lead = len(shape) - number
    # From lead, counts, sizes to lead, count, size, count, size, ..
    order = list(range(lead))
    for d in range(number):
        order += [lead + d, lead + number + d]
    name = w.add("Transpose", x, perm=order)
    current = list(given[0][1])
    current = [current[d] for d in order]
    for d, (count, stride, size, dilation, low) in enumerate(
            _window_attributes(a)):
        axis = lead + d
        n = shape[axis]
        places = w.shaped(_places(w, count, stride, size, dilation, low * -1),
                          [count * size, 1])
        columns = w.shaped(_steps(w, n, 1), [1, n])
        chosen = w.cast(w.add("Equal", [places, columns]), dtype)
        current = current[:axis] + [count * size] + current[axis + 2:]
        flat = w.shaped(name, current)
        rank = len(current)
        back = [r for r in range(rank) if r != axis] + [axis]
        product = w.add("MatMul", [w.add("Transpose", [flat], perm=back),
                                   chosen])
        name = w.add("Transpose", [product],
                     perm=[back.index(r) for r in range(rank)])
        current[axis] = n
    return name


def _indexed(a, rank: int):
    """The order of axes with the indexed ones behind the batch."""
    axes, batch = a.integers("axes"), a.integer("batch")
    rest = [d for d in range(batch, rank) if d not in axes]
    return axes, batch, list(range(batch)) + axes + rest


def _bounds(w, shape, axes) -> str:
    return w.sizes([shape[d] for d in axes])


def _inside(w, index, bounds) -> str:
    """Whether each row of indices is in range."""
    zero = w.size(0)
    good = w.add("And", [w.add("GreaterOrEqual", [index, zero]),
                         w.add("Less", [index, bounds])])
    least = w.add("ReduceMin", [w.cast(good, "i32"), w.integers([-1])],
                  keepdims=0)
    return w.cast(least, "bool")


def gather(w, a, x, given, gives):
    shape = given[0][1]
    axes, batch, order = _indexed(a, len(shape))
    data, index = x[0], x[1]
    if not axes:
        # Nothing is chosen: x stands for each row of indices.
        lead = len(given[1][1]) - 1
        spread = [*shape[:batch], *([1] * (lead - batch)), *shape[batch:]]
        return w.add("Expand", [w.shaped(data, spread), w.sizes(gives[0][1])])
    if order != sorted(order):
        data = w.add("Transpose", [data], perm=order)
    if a.text("mode", "error") == "error":
        return w.add("GatherND", [data, index], batch_dims=batch)
    bounds = _bounds(w, shape, axes)
    inside = _inside(w, index, bounds)
    # A row out of range reads a fill behind the last element.
    pads = [0] * len(order)
    pads[batch] = 1
    wide = w.add("Pad", [data, w.integers([0] * len(order) + pads), x[2]])
    rows = w.shaped(inside, [*given[1][1][:-1], 1])
    outside = w.sizes([shape[axes[0]]] + [0] * (len(axes) - 1))
    safe = w.add("Where", [rows, index, outside])
    return w.add("GatherND", [wide, safe], batch_dims=batch)


def scatter(w, a, x, given, gives):
    from ..errors import UnimplementedError
    shape = given[0][1]
    axes, batch, order = _indexed(a, len(shape))
    if not axes:
        raise UnimplementedError("`scatter` along no axis has no ONNX op")
    data, index, updates = x
    moved = w.add("Transpose", [data], perm=order)
    bounds = _bounds(w, shape, axes)
    inside = _inside(w, index, bounds)
    # A row out of range writes behind the last element, which then goes.
    pads = [0] * len(order)
    pads[batch] = 1
    fill = w.number(0, given[0][0])
    wide = w.add("Pad", [moved, w.integers([0] * len(order) + pads), fill])
    lead = given[1][1][:-1]
    rows = w.shaped(inside, [*lead, 1])
    outside = w.sizes([shape[axes[0]]] + [0] * (len(axes) - 1))
    safe = w.add("Where", [rows, index, outside])
    for d in reversed(range(batch)):
        # ScatterND has no batch: the rows name their example.
        spread = [1] * (len(lead) + 1)
        spread[d] = lead[d]
        numbers = w.add("Expand", [w.shaped(_steps(w, lead[d], 1), spread),
                                   w.sizes([*lead, 1])])
        safe = w.add("Concat", [numbers, safe], axis=-1)
    mode = a.text("mode", "set")
    written = w.add("ScatterND", [wide, safe, updates],
                    reduction="none" if mode == "set" else mode)
    cut = w.add("Slice", [written, w.integers([0]),
                          w.sizes([shape[axes[0]]]), w.integers([batch])])
    return w.add("Transpose", [cut],
                 perm=[order.index(d) for d in range(len(order))])


def sort(w, a, x, given, gives):
    dtype, shape = given[0]
    axis = a.integer("axis")
    narrow = dtype not in ("f16", "f32", "f64", "i32", "i64", "i8", "i16",
                           "u8")
    name = w.cast(x[0], "i64") if narrow else x[0]
    values, places = w.add("TopK", [name, w.sizes([shape[axis]])], count=2,
                           axis=axis, largest=int(a.flag("descending")),
                           sorted=1)
    return [w.cast(values, dtype) if narrow else values, places]


def nonzero(w, a, x, given, gives):
    name = x[0]
    if given[0][0] not in ("bool", "f32", "i32", "i64", "u8"):
        name = w.add("Not", [w.add("Equal", [name, w.number(
            0, given[0][0])])])
    return w.add("Transpose", [w.add("NonZero", [name])], perm=[1, 0])
