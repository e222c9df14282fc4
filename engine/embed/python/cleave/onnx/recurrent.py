"""LSTM layers whose number of steps is known: written out, a step a line.

A `scan` has no machine code as a whole, a step has. So a sequence of up to
STEPS steps becomes calls of `lstm_cell`; a longer one, or one whose length is a
variable, becomes a call of the rule `onnx.LSTM`, which scans.
"""

from __future__ import annotations

from .operators import attributes_of, reshape
from .trace import Body, Value

STEPS = 4
_UNUSUAL = ("activations", "activation_alpha", "activation_beta", "clip")


def lstm(body: Body, node, inputs):
    """The results of an LSTM node, or None where the rule is to do it."""
    attributes = attributes_of(node)
    x, w, r, bias, lengths, h0, c0, peepholes = (
        list(inputs) + [None] * (8 - len(inputs)))
    if lengths is not None or peepholes is not None:
        return None
    if (any(name in attributes for name in _UNUSUAL)
            or attributes.get("input_forget", 0)
            or attributes.get("layout", 0)):
        return None
    steps, batch = x.shape[0], x.shape[1]
    ways, hidden = w.shape[0], r.shape[2]
    if not isinstance(steps, int) or not 1 <= steps <= STEPS:
        return None
    slices = [_element(body, x, t) for t in range(steps)]
    outputs, lasts, cells = [], [], []
    for way in range(ways):
        backward = attributes.get("direction") == "reverse" or way == 1
        layer = [_gates(body, w, way, hidden), _gates(body, r, way, hidden)]
        if bias is not None:
            layer.append(_both_biases(body, bias, way, hidden))
        h = _state(body, h0, way, x, (batch, hidden))
        c = _state(body, c0, way, x, (batch, hidden))
        row: list = [None] * steps
        for t in reversed(range(steps)) if backward else range(steps):
            h, c = _step(body, node, slices[t], h, c, layer)
            row[t] = h
        outputs.append(row)
        lasts.append(h)
        cells.append(c)
    every = [outputs[way][t] for t in range(steps) for way in range(ways)]
    wanted = [(every, (steps, ways, batch, hidden)),
              (lasts, (ways, batch, hidden)), (cells, (ways, batch, hidden))]
    return [_stack(body, name, *parts) if name else None
            for name, parts in zip(node.output, wanted)]


def _element(body: Body, value: Value, at: int) -> Value:
    """Element `at` along the first axis."""
    rest = value.shape[1:]
    if value.shape[0] == 1:
        return reshape(body, value.name, value, rest)
    head = ", ".join(f"i{d} < {s}" for d, s in enumerate(rest))
    places = "".join(f", i{d}" for d in range(len(rest)))
    return body.emit(value.name, value.dtype, rest, f"{{0}}[{at}{places}]",
                     value, head=f"[{head}]")


def _gates(body: Body, weights: Value, way: int, hidden) -> Value:
    """One direction's rows, in the order of gates that `lstm_cell` has."""
    return body.emit(weights.name + "_gates", weights.dtype,
                     weights.shape[1:],
                     f"onnx_gates(onnx_direction({{0}}, {way}), {hidden})",
                     weights)


def _both_biases(body: Body, bias: Value, way: int, hidden) -> Value:
    whole = f"onnx_direction({{0}}, {way})"
    return body.emit(
        bias.name + "_gates", bias.dtype, (4 * hidden,),
        f"onnx_gates({whole}, {hidden}) + "
        f"onnx_gates(onnx_rows({whole}, 1, {4 * hidden}), {hidden})", bias)


def _state(body: Body, state: Value | None, way: int, x: Value,
           shape) -> Value:
    if state is not None:
        return _element(body, state, way)
    sizes = ", ".join(str(s) for s in shape)
    return body.emit("zero_state", x.dtype, shape,
                     f"zeros(shape: [{sizes}], dtype: {x.dtype})")


def _step(body: Body, node, x: Value, h: Value, c: Value, layer):
    places = ", ".join(f"{{{i}}}" for i in range(3 + len(layer)))
    record = body.emit(node.name or "lstm", x.dtype, (),
                       f"lstm_cell({places})", x, h, c, *layer)
    return (body.emit("h", x.dtype, h.shape, "{0}.h", record),
            body.emit("c", x.dtype, c.shape, "{0}.c", record))


def _stack(body: Body, name: str, parts, shape) -> Value:
    if len(parts) == 1:
        return reshape(body, name, parts[0], shape)
    places = ", ".join(f"{{{i}}}" for i in range(len(parts)))
    rows = body.emit(name, parts[0].dtype,
                     (len(parts) * shape[-2], shape[-1]),
                     f"concatenate([{places}], axis: 0)", *parts)
    return reshape(body, name, rows, shape)


HANDLERS = {"LSTM": lstm}
