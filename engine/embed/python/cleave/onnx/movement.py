"""Nodes that move elements, or compute with shapes.

Shapes, indices and paddings that are known, but for the sizes' variables, are
computed here. The movement itself is said in the language: `reshape`,
`transpose`, `broadcast_to`, `cat`, and reads such as `x[i0, 2 * i1 + 1]`.
"""

from __future__ import annotations

import numpy as np

from .operators import attributes_of, convert, reshape
from .size import Size, broadcast, maximum, minimum, product
from .trace import (DTYPES, NUMPY, Body, Unsupported, Value, known_list,
                    sizes_text, static_value)

# Constants of up to so many elements are computed before anything runs.
KNOWN_ELEMENTS = 1024
_FAR = 10**9


def axis_of(value: int, rank: int) -> int:
    if not -rank <= value < max(rank, 1):
        raise Unsupported(f"axis {value} of a tensor with {rank} axes")
    return value + rank if value < 0 else value


def _axes(node, inputs, at: int, attributes: dict):
    """The axes as an input, or as an attribute of older opsets."""
    if len(inputs) > at and inputs[at] is not None:
        return known_list(inputs[at], "the list of axes")
    return attributes.get("axes")


def identity(body: Body, node, inputs):
    return [inputs[0]]


def constant(body: Body, node, inputs):
    attributes = attributes_of(node)
    name = node.output[0]
    for key, value in attributes.items():
        if key == "value":
            return [initializer(body, name, value)]
        if key in ("value_float", "value_floats"):
            return [initializer(body, name, np.array(value, np.float32))]
        if key in ("value_int", "value_ints"):
            return [static_value(np.array(value, np.int64), name)]
    raise Unsupported("a constant of texts, or a sparse one")


def initializer(body: Body, name: str, array: np.ndarray) -> Value:
    """A tensor of the model: a parameter, or known where it is small or has
    integers, which may be a shape."""
    if array.dtype.name == "bfloat16":
        text = body.function.parameter(name, array, "bf16")
        return Value("bf16", tuple(array.shape), text, name=name)
    if array.dtype not in _DTYPES:
        raise Unsupported(f"a tensor of {array.dtype}")
    value = static_value(array, name, _DTYPES[array.dtype])
    if value.is_float and array.size > 1:
        value.text = body.function.parameter(name, array, value.dtype)
        if array.size > 16:
            value.static = None
    return value


_DTYPES = {np.dtype(numpy): dtype for dtype, numpy in NUMPY.items()}


def shape_of(body: Body, node, inputs):
    attributes = attributes_of(node)
    sizes = list(inputs[0].shape)
    rank = len(sizes)
    start = attributes.get("start", 0)
    end = attributes.get("end", rank)
    sizes = sizes[slice(*(min(max(p + rank if p < 0 else p, 0), rank)
                          for p in (start, end)))]
    return [sizes_value(sizes, node.output[0])]


def sizes_value(sizes, name: str) -> Value:
    array = np.empty(len(sizes), object)
    array[:] = sizes
    if all(isinstance(s, int) for s in sizes):
        array = array.astype(np.int64)
    return static_value(array, name, "i64")


def size_of(body: Body, node, inputs):
    array = np.empty((), object)
    array[()] = product(inputs[0].shape)
    if isinstance(array[()], int):
        array = array.astype(np.int64)
    return [static_value(array, node.output[0], "i64")]


def reshape_node(body: Body, node, inputs):
    attributes = attributes_of(node)
    x = inputs[0]
    shape = (known_list(inputs[1], "the shape") if len(inputs) > 1
             else list(attributes["shape"]))
    if not attributes.get("allowzero", 0):
        shape = [x.shape[d] if isinstance(s, int) and s == 0 else s
                 for d, s in enumerate(shape)]
    count = product(x.shape)
    if -1 in [s for s in shape if isinstance(s, int)]:
        at = [isinstance(s, int) and s == -1 for s in shape].index(True)
        rest = product(s for d, s in enumerate(shape) if d != at)
        if isinstance(rest, int) and rest == 0:
            shape[at] = 0
        else:
            shape[at] = count // rest
    return [reshape(body, node.output[0], x, shape)]


def flatten(body: Body, node, inputs):
    x = inputs[0]
    at = attributes_of(node).get("axis", 1)
    at = at + len(x.shape) if at < 0 else at
    return [reshape(body, node.output[0], x,
                    (product(x.shape[:at]), product(x.shape[at:])))]


def squeeze(body: Body, node, inputs):
    x = inputs[0]
    axes = _axes(node, inputs, 1, attributes_of(node))
    rank = len(x.shape)
    if axes is None:
        if any(isinstance(s, Size) for s in x.shape):
            raise Unsupported("which axes have extent 1 is not known")
        axes = [d for d in range(rank) if x.shape[d] == 1]
    axes = [axis_of(a, rank) for a in axes]
    return [reshape(body, node.output[0], x,
                    [s for d, s in enumerate(x.shape) if d not in axes])]


def unsqueeze(body: Body, node, inputs):
    x = inputs[0]
    axes = _axes(node, inputs, 1, attributes_of(node))
    rank = len(x.shape) + len(axes)
    axes = {axis_of(a, rank) for a in axes}
    rest = iter(x.shape)
    return [reshape(body, node.output[0], x,
                    [1 if d in axes else next(rest) for d in range(rank)])]


def transpose(body: Body, node, inputs):
    x = inputs[0]
    order = attributes_of(node).get("perm")
    order = list(order) if order is not None else list(
        reversed(range(len(x.shape))))
    shape = [x.shape[d] for d in order]
    if order == sorted(order):
        return [x]
    return [body.emit(node.output[0], x.dtype, shape,
                      f"transpose({{0}}, axes: {sizes_text(order)})", x)]


def expand(body: Body, node, inputs):
    x = inputs[0]
    shape = broadcast(x.shape, tuple(known_list(inputs[1], "the shape")))
    return [broadcast_to(body, node.output[0], x, shape)]


def broadcast_to(body: Body, name: str, x: Value, shape) -> Value:
    if x.shape == tuple(shape):
        return x
    return body.emit(name, x.dtype, shape,
                     f"broadcast_to({{0}}, shape: {sizes_text(shape)})", x)


def concat(body: Body, node, inputs):
    at = axis_of(attributes_of(node)["axis"], len(inputs[0].shape))
    parts = [v for v in inputs if not (isinstance(v.shape[at], int)
                                       and v.shape[at] == 0)]
    if len(parts) <= 1:
        return [parts[0] if parts else inputs[0]]
    shape = list(parts[0].shape)
    for d in range(len(shape)):
        if d == at:
            shape[d] = sum(v.shape[at] for v in parts)
        else:
            # One size of equal ones: the number, where one is known.
            shape[d] = next((v.shape[d] for v in parts
                             if isinstance(v.shape[d], int)), shape[d])
    places = ", ".join(f"{{{i}}}" for i in range(len(parts)))
    return [body.emit(node.output[0], parts[0].dtype, shape,
                      f"cat([{places}], axis: {at})", *parts)]


def _span(n, start, end, step: int):
    """The first place and the number of places of one axis of a Slice."""
    def placed(p, low, high):
        # Exporters write "as far as it goes" as a very large number.
        if isinstance(p, int) and p >= _FAR:
            return high
        if isinstance(p, int) and p <= -_FAR:
            return low
        if isinstance(p, int) and p < 0:
            p = n + p
        return minimum(maximum(p, low), high)

    if step > 0:
        first, last = placed(start, 0, n), placed(end, 0, n)
        count = maximum(0, (last - first + step - 1) // step)
    else:
        first = placed(start, 0, n - 1)
        last = placed(end, -1, n - 1)
        count = maximum(0, (first - last - step - 1) // -step)
    return first, count


def slice_node(body: Body, node, inputs):
    attributes = attributes_of(node)
    x = inputs[0]
    rank = len(x.shape)

    def operand(at, name):
        if len(inputs) > at and inputs[at] is not None:
            return known_list(inputs[at], f"its input `{name}`")
        return attributes.get(name)

    starts, ends = operand(1, "starts"), operand(2, "ends")
    axes = operand(3, "axes") or list(range(len(starts)))
    steps = operand(4, "steps") or [1] * len(starts)
    spans = {d: (0, x.shape[d], 1) for d in range(rank)}
    for start, end, axis, step in zip(starts, ends, axes, steps):
        at = axis_of(axis, rank)
        if not isinstance(step, int) or step == 0:
            raise Unsupported("a step that is not known, or 0")
        spans[at] = (*_span(x.shape[at], start, end, step), step)
    return [read(body, node.output[0], x, [spans[d] for d in range(rank)])]


def read(body: Body, name: str, x: Value, spans) -> Value:
    """Per axis from `first` so many elements, `step` apart."""
    if all(first == 0 and count == s and step == 1
           for (first, count, step), s in zip(spans, x.shape)):
        return x
    head, places = [], []
    for d, (first, count, step) in enumerate(spans):
        head.append(f"i{d} < {count}")
        places.append(_place(f"i{d}", first, step))
    return body.emit(name, x.dtype, [count for _, count, _ in spans],
                     "{0}[" + ", ".join(places) + "]", _named(body, x),
                     head="[" + ", ".join(head) + "]")


def _place(index: str, first, step: int) -> str:
    text = index if abs(step) == 1 else f"{abs(step)} * {index}"
    if step < 0:
        return f"{first} - {text}"
    if isinstance(first, int) and first == 0:
        return text
    return f"{text} + {first}"


def split(body: Body, node, inputs):
    attributes = attributes_of(node)
    x = inputs[0]
    at = axis_of(attributes.get("axis", 0), len(x.shape))
    n = x.shape[at]
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = known_list(inputs[1], "the list of sizes")
    elif "split" in attributes:
        sizes = list(attributes["split"])
    else:
        parts = attributes.get("num_outputs", len(node.output))
        each = (n + parts - 1) // parts
        sizes = [each] * (parts - 1) + [n - each * (parts - 1)]
    results, first = [], 0
    for output, size in zip(node.output, sizes):
        spans = [(0, s, 1) for s in x.shape]
        spans[at] = (first, size, 1)
        first = first + size
        results.append(read(body, output, x, spans) if output else None)
    return results


def gather(body: Body, node, inputs):
    """An element, or neighbours, of known places; else a call of the rule."""
    x, indices = inputs
    if indices.static is None or len(indices.shape) > 1:
        return None
    at = axis_of(attributes_of(node).get("axis", 0), len(x.shape))
    n = x.shape[at]
    places = [p + n if isinstance(p, int) and p < 0 else p
              for p in known_list(indices, "the indices")]
    for p in places:
        if isinstance(p, int) and isinstance(n, int) and not 0 <= p < n:
            raise Unsupported(f"index {p} of an axis with {n} elements")
    if not indices.shape:
        head, at_places, shape = [], [], []
        for d, s in enumerate(x.shape):
            if d == at:
                at_places.append(str(places[0]))
                continue
            at_places.append(f"i{len(shape)}")
            head.append(f"i{len(shape)} < {s}")
            shape.append(s)
        if not shape:
            return [reshape(body, node.output[0], x, ())] if n == 1 else [
                body.emit(node.output[0], x.dtype, (),
                          f"{{0}}[{places[0]}]", _named(body, x))]
        return [body.emit(node.output[0], x.dtype, shape,
                          "{0}[" + ", ".join(at_places) + "]",
                          _named(body, x),
                          head="[" + ", ".join(head) + "]")]
    if places and all(isinstance(p, int) for p in places) and all(
            b - a == 1 for a, b in zip(places, places[1:])):
        spans = [(0, s, 1) for s in x.shape]
        spans[at] = (places[0], len(places), 1)
        return [read(body, node.output[0], x, spans)]
    return None


def cast(body: Body, node, inputs):
    to = attributes_of(node)["to"]
    if to not in DTYPES:
        raise Unsupported(f"a cast to element type {to}")
    return [convert(body, node.output[0], inputs[0], DTYPES[to])]


def cast_like(body: Body, node, inputs):
    return [convert(body, node.output[0], inputs[0], inputs[1].dtype)]


def constant_of_shape(body: Body, node, inputs):
    value = attributes_of(node).get("value", np.zeros(1, np.float32))
    if value.dtype not in _DTYPES:
        raise Unsupported(f"a tensor of {value.dtype}")
    shape = tuple(known_list(inputs[0], "the shape"))
    count = product(shape)
    one = static_value(value.reshape(()), node.output[0],
                       _DTYPES[value.dtype])
    if isinstance(count, int) and count <= KNOWN_ELEMENTS:
        return [static_value(np.full(shape, value.reshape(())[()]),
                             node.output[0], one.dtype)]
    return [broadcast_to(body, node.output[0], one, shape)]


def range_node(body: Body, node, inputs):
    start, limit, delta = (known_list(v, "a bound")[0] for v in inputs)
    name = node.output[0]
    dtype = inputs[0].dtype
    if not inputs[0].is_int:
        count = max(0, int(np.ceil((limit - start) / delta)))
        kind = NUMPY[dtype]
        return [static_value((start + np.arange(count) * delta).astype(kind),
                             name, dtype)]
    if not isinstance(delta, int):
        raise Unsupported("a step that is not known")
    if all(isinstance(p, int) for p in (start, limit)):
        return [static_value(np.arange(start, limit, delta, NUMPY[dtype]),
                             name, dtype)]
    step = abs(delta)
    reach = limit - start if delta > 0 else start - limit
    count = maximum(0, (reach + step - 1) // step)
    text = f"iota({count})"
    if delta != 1:
        text = f"({delta}) * {text}"
    if not (isinstance(start, int) and start == 0):
        text = f"{start} + {text}"
    if dtype != "i64":
        text = f"convert({text}, dtype: {dtype})"
    return [body.emit(name, dtype, (count,), text)]


def dropout(body: Body, node, inputs):
    """Outside of training, dropout does nothing."""
    if len(inputs) > 2 and inputs[2] is not None:
        if any(known_list(inputs[2], "whether it trains")):
            raise Unsupported("dropout in training draws random numbers")
    x = inputs[0]
    results = [x]
    if len(node.output) > 1 and node.output[1]:
        yes = static_value(np.array(True), node.output[1])
        results.append(broadcast_to(body, node.output[1], yes, x.shape))
    return results


def one_hot(body: Body, node, inputs):
    indices, depth, values = inputs
    depth = known_list(depth, "the depth")[0]
    rank = len(indices.shape)
    at = axis_of(attributes_of(node).get("axis", -1), rank + 1)
    shape = list(indices.shape)
    shape.insert(at, int(depth) if not isinstance(depth, Size) else depth)
    places = [f"i{d}" for d in range(rank + 1) if d != at]
    head = ", ".join(f"i{d} < {s}" for d, s in enumerate(shape))
    k = convert(body, node.output[0], indices, "i64")
    place = "[" + ", ".join(places) + "]" if places else ""
    n = shape[at]
    return [body.emit(
        node.output[0], values.dtype, shape,
        f"select({{0}}{place} == i{at} or {{0}}{place} + {n} == i{at}, "
        "{1}[1], {1}[0])", k, _named(body, values), head=f"[{head}]")]


def _named(body: Body, value: Value) -> Value:
    """The value under a name, of which elements can be read."""
    text = body.text(value)
    if text.isidentifier():
        return value
    return body.emit(value.name, value.dtype, value.shape, text)


HANDLERS = {
    "Identity": identity, "Constant": constant, "Shape": shape_of,
    "Size": size_of, "Reshape": reshape_node, "Flatten": flatten,
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose,
    "Expand": expand, "Concat": concat, "Slice": slice_node, "Split": split,
    "Gather": gather, "Cast": cast, "CastLike": cast_like,
    "ConstantOfShape": constant_of_shape, "Range": range_node,
    "Dropout": dropout, "OneHot": one_hot,
}
