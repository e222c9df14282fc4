"""Nodes whose inputs are known before anything runs.

Exporters compute shapes, indices and paddings by nodes. Such a node is
evaluated here: by ONNX's own reference where all numbers are known, and by the
functions below where some are sizes with variables.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from .operators import attributes_of
from .size import Size, maximum, minimum
from .trace import FROM_NUMPY, Unsupported, Value, static_value

# Elements that a fold may give; larger results are left to the run.
_LARGEST = 1024
# Ops that are not to be folded: they draw random numbers, or have bodies.
_NEVER = {"If", "Loop", "Scan", "RandomNormal", "RandomUniform", "Bernoulli",
          "RandomNormalLike", "RandomUniformLike", "Multinomial", "Dropout",
          "Constant"}


def fold(node: onnx.NodeProto, inputs: list, opset: int):
    """The results as static values, or None where the node is to run."""
    if node.op_type in _NEVER or not any(v is not None for v in inputs):
        return None
    if any(v is not None and v.static is None for v in inputs):
        return None
    if any(v is not None and v.static.dtype == object
           and any(isinstance(e, Size) for e in v.static.reshape(-1))
           for v in inputs):
        return _symbolic(node, inputs)
    arrays = [None if v is None else _concrete(v) for v in inputs]
    return _evaluate(node, arrays, opset)


def _concrete(value: Value) -> np.ndarray:
    if value.static.dtype == object:
        return value.static.astype(np.int64 if value.dtype == "i64"
                                   else np.int32)
    return value.static


def _evaluate(node, arrays, opset: int):
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(names)
    outputs = [o for o in node.output if o]
    graph = onnx.helper.make_graph(
        [copy], "fold",
        [onnx.helper.make_value_info(n, onnx.TypeProto())
         for n in names if n],
        [onnx.helper.make_value_info(o, onnx.TypeProto()) for o in outputs])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(
                None, {n: a for n, a in zip(names, arrays) if n})
    except Exception:
        # The reference does not have every op: then the node stays.
        return None
    results = dict(zip(outputs, found))
    if any(not isinstance(r, np.ndarray) and not np.isscalar(r)
           or np.asarray(r).dtype not in FROM_NUMPY
           or np.asarray(r).size > _LARGEST for r in results.values()):
        return None
    return [static_value(results[o], o) if o else None for o in node.output]


def _symbolic(node, inputs):
    function = _SYMBOLIC.get(node.op_type)
    if function is None:
        return None
    arrays = [None if v is None else v.static.astype(object) for v in inputs]
    try:
        result = function(attributes_of(node), *arrays)
    except (TypeError, ValueError, IndexError) as error:
        raise Unsupported(f"a computation with shapes: {error}") from error
    if result is None:
        return None
    result = np.asarray(result)
    dtype = "bool" if result.dtype == bool else inputs[0].dtype
    if result.dtype == object and not any(
            isinstance(e, Size) for e in result.reshape(-1)):
        result = result.astype(np.int32 if dtype == "i32" else np.int64)
    return [Value(dtype, tuple(result.shape), None, result, node.output[0])]


def _elementwise(function):
    ufunc = {}

    def apply(attributes, *arrays):
        key = len(arrays)
        if key not in ufunc:
            ufunc[key] = np.frompyfunc(function, key, 1)
        result = ufunc[key](*arrays)
        return result if isinstance(result, np.ndarray) else _scalar(result)

    return apply


def _scalar(value) -> np.ndarray:
    array = np.empty((), object)
    array[()] = value
    return array


def _gather(attributes, data, indices):
    indices = indices.astype(np.int64)
    axis = attributes.get("axis", 0)
    result = np.take(data, indices, axis=axis)
    return result if isinstance(result, np.ndarray) else _scalar(result)


def _slice(attributes, data, starts, ends, axes=None, steps=None):
    starts, ends = starts.astype(np.int64), ends.astype(np.int64)
    axes = range(len(starts)) if axes is None else axes.astype(np.int64)
    steps = [1] * len(starts) if steps is None else steps.astype(np.int64)
    cut = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        cut[int(axis)] = slice(
            int(start), None if step < 0 and end < -2**31 else int(end),
            int(step))
    return data[tuple(cut)]


def _reshape(attributes, data, shape):
    return data.reshape([int(s) for s in shape])


def _unsqueeze(attributes, data, axes=None):
    axes = attributes.get("axes") if axes is None else axes
    for axis in sorted(int(a) for a in axes):
        data = np.expand_dims(data, axis)
    return data


def _squeeze(attributes, data, axes=None):
    axes = attributes.get("axes") if axes is None else axes
    axes = None if axes is None else tuple(int(a) for a in axes)
    return np.squeeze(data, axes)


def _reduce(function):
    def apply(attributes, data, axes=None):
        if data.ndim != 1:
            return None
        result = data[0]
        for element in data[1:]:
            result = function(result, element)
        keep = attributes.get("keepdims", 1)
        array = _scalar(result)
        return array.reshape(1) if keep else array

    return apply


def _concat(attributes, *arrays):
    return np.concatenate(arrays, axis=attributes["axis"])


def _cast(attributes, data):
    return data if attributes["to"] in (6, 7) else None


def _equal(a, b):
    # Sizes with variables that differ may still be equal where it runs.
    if a == b:
        return True
    if isinstance(a - b, int):
        return False
    raise Unsupported(f"whether {a} equals {b} depends on sizes: give them by "
                      "`sizes`")


def _compare(a, b):
    known = (a - b)
    if isinstance(known, int):
        return known
    raise Unsupported(f"whether {a} is below {b} depends on sizes: give them "
                      "by `sizes`")


def _where(c, a, b):
    return a if c else b


def _divided(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return int(a / b) if b else 0
    return a // b


def _bools(apply):
    def applied(*arguments):
        return np.asarray(apply(*arguments)).astype(bool)

    return applied


_SYMBOLIC = {
    "Add": _elementwise(lambda a, b: a + b),
    "Sub": _elementwise(lambda a, b: a - b),
    "Mul": _elementwise(lambda a, b: a * b),
    "Div": _elementwise(_divided),
    "Mod": _elementwise(lambda a, b: a % b),
    "Neg": _elementwise(lambda a: a * -1),
    "Max": _elementwise(maximum),
    "Min": _elementwise(minimum),
    "Equal": _bools(_elementwise(_equal)),
    "Greater": _bools(_elementwise(lambda a, b: _compare(a, b) > 0)),
    "Less": _bools(_elementwise(lambda a, b: _compare(a, b) < 0)),
    "GreaterOrEqual": _bools(_elementwise(lambda a, b: _compare(a, b) >= 0)),
    "LessOrEqual": _bools(_elementwise(lambda a, b: _compare(a, b) <= 0)),
    "Where": _elementwise(_where),
    "Gather": _gather, "Slice": _slice, "Reshape": _reshape,
    "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "Concat": _concat,
    "Cast": _cast, "Identity": lambda attributes, data: data,
    "ReduceProd": _reduce(lambda a, b: a * b),
    "ReduceSum": _reduce(lambda a, b: a + b),
    "ReduceMax": _reduce(maximum), "ReduceMin": _reduce(minimum),
}
