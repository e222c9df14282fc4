"""Each primitive in ONNX: a function that adds its nodes.

A function gets the writer, the attributes, the operands' names, and the types
of operands and results; it returns the name of the result, or several.
"""

from __future__ import annotations

from ..errors import UnimplementedError
from . import export_control, export_indexing
from .trace import NUMPY

_FLOATS = ("f16", "bf16", "f32", "f64")


def _direct(op: str):
    return lambda w, a, x, given, gives: w.add(op, x)


def _refuse(why: str):
    def refuse(w, a, x, given, gives):
        raise UnimplementedError(f"`{a.op}` has no ONNX op: {why}")
    return refuse


def _bits_or_truths(truths: str, bits: str):
    def build(w, a, x, given, gives):
        return w.add(truths if given[0][0] == "bool" else bits, x)
    return build


def _rsqrt(w, a, x, given, gives):
    return w.add("Reciprocal", [w.add("Sqrt", x)])


def _expm1(w, a, x, given, gives):
    # tanh(x / 2) (exp(x) + 1) does not cancel near 0.
    dtype = given[0][0]
    half = w.add("Mul", [x[0], w.number(0.5, dtype)])
    more = w.add("Add", [w.add("Exp", x), w.number(1, dtype)])
    return w.add("Mul", [w.add("Tanh", [half]), more])


def _log1p(w, a, x, given, gives):
    # log(u) x / (u - 1), u = 1 + x as rounded, is right where u is 1 no more.
    dtype = given[0][0]
    one = w.number(1, dtype)
    u = w.add("Add", [x[0], one])
    apart = w.add("Sub", [u, one])
    same = w.add("Equal", [u, one])
    far = w.add("IsInf", [u])
    divisor = w.add("Where", [w.add("Or", [same, far]), one, apart])
    scaled = w.add("Div", [w.add("Mul", [w.add("Log", [u]), x[0]]), divisor])
    return w.add("Where", [same, x[0], w.add("Where", [far, u, scaled])])


def _cbrt(w, a, x, given, gives):
    third = w.number(1 / 3, given[0][0])
    root = w.add("Pow", [w.add("Abs", x), third])
    return w.add("Mul", [w.add("Sign", x), root])


# Coefficients of a Chebyshev fit in t = 1 / (1 + x / 2), lowest first:
# erfc(x) = t exp(-x^2 + fit(t)) for x >= 0, within 1.2e-7 of the value.
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,
         0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277)


def _erfc(w, a, x, given, gives):
    if given[0][0] == "f64":
        raise UnimplementedError("`erfc` of f64 has no ONNX op: 1 - erf(x) "
                                 "has no digits where x is large")

    def number(value):
        return w.number(value, "f64")

    wide = w.cast(x[0], "f64")
    size = w.add("Abs", [wide])
    t = w.add("Reciprocal", [w.add("Add", [
        w.add("Mul", [size, number(0.5)]), number(1)])])
    fit = number(_ERFC[-1])
    for coefficient in reversed(_ERFC[:-1]):
        fit = w.add("Add", [w.add("Mul", [fit, t]), number(coefficient)])
    power = w.add("Sub", [fit, w.add("Mul", [size, size])])
    right = w.add("Mul", [t, w.add("Exp", [power])])
    left = w.add("Sub", [number(2), right])
    below = w.add("Less", [wide, number(0)])
    return w.cast(w.add("Where", [below, left, right]), given[0][0])


def _isinf(w, a, x, given, gives):
    if given[0][0] in ("f32", "f64", "f16"):
        return w.add("IsInf", x)
    return w.add("Expand", [w.number(False, "bool"), w.sizes(given[0][1])])


def _isnan(w, a, x, given, gives):
    if given[0][0] in _FLOATS:
        return w.add("IsNaN", x)
    return w.add("Expand", [w.number(False, "bool"), w.sizes(given[0][1])])


def _convert(w, a, x, given, gives):
    return w.cast(x[0], gives[0][0])


def _ne(w, a, x, given, gives):
    return w.add("Not", [w.add("Equal", x)])


def _floor_div(w, a, x, given, gives):
    rest = w.add("Mod", x)
    return w.add("Div", [w.add("Sub", [x[0], rest]), x[1]])


def _rem(w, a, x, given, gives):
    return w.add("Mod", x, fmod=1)


def _shift(direction: str):
    def build(w, a, x, given, gives):
        if not given[0][0].startswith("u"):
            raise UnimplementedError(
                f"`{a.op}` of {given[0][0]} has no ONNX op: BitShift takes "
                "unsigned integers")
        return w.add("BitShift", x, direction=direction)
    return build


def _fma(w, a, x, given, gives):
    if given[0][0] not in ("f32", "f16", "bf16"):
        raise UnimplementedError(f"`fma` of {given[0][0]} has no ONNX op: a "
                                 "product and a sum are rounded twice")
    wide = [w.cast(v, "f64") for v in x]
    total = w.add("Add", [w.add("Mul", wide[:2]), wide[2]])
    return w.cast(total, given[0][0])


def _constant(w, a, x, given, gives):
    dtype = gives[0][0]
    text = a.text("value")
    if dtype == "bool":
        return w.number(text == "true", dtype)
    if dtype not in NUMPY or dtype[0] == "c":
        raise UnimplementedError(f"a constant of {dtype} has no ONNX op")
    if text.startswith("#"):
        number: float | int = float.fromhex(text[1:])
    else:
        number = float(text) if "." in text or not text.lstrip(
            "-").isdigit() else int(text)
    return w.number(number if dtype in _FLOATS else int(number), dtype)


def _extent(w, a, x, given, gives):
    return w.size(a.size("value"))


def _iota(w, a, x, given, gives):
    size = a.size("size")
    if isinstance(size, int) and size <= 64:
        return w.integers(range(size))
    return w.add("Range", [w.size(0), w.size(size), w.size(1)])


# Movement.

def _broadcast(w, a, x, given, gives):
    shape, axes = gives[0][1], a.integers("axes")
    spread = [1] * len(shape)
    for place, axis in enumerate(axes):
        spread[axis] = given[0][1][place]
    name = x[0]
    if spread != given[0][1]:
        name = w.shaped(name, spread)
    return name if spread == shape else w.add("Expand",
                                              [name, w.sizes(shape)])


def _reshape(w, a, x, given, gives):
    return w.shaped(x[0], gives[0][1])


def _transpose(w, a, x, given, gives):
    return w.add("Transpose", x, perm=a.integers("axes"))


def _slice(w, a, x, given, gives):
    start, size = a.sizes("start"), a.sizes("size")
    stride = a.integers("stride")
    if not start:
        return w.add("Identity", x)
    ends = [s + n * d for s, n, d in zip(start, size, stride)]
    return w.add("Slice", [x[0], w.sizes(start), w.sizes(ends),
                           w.integers(range(len(start))),
                           w.integers(stride)])


def _reverse(w, a, x, given, gives):
    axes = a.integers("axes")
    count = len(axes)
    return w.add("Slice", [x[0], w.integers([-1] * count),
                           w.integers([-2**63] * count), w.integers(axes),
                           w.integers([-1] * count)])


def padded(w, name, fill, low, high):
    """The tensor with fills around it; negative numbers crop."""
    if all(isinstance(p, int) and p == 0 for p in [*low, *high]):
        return name
    return w.add("Pad", [name, w.sizes([*low, *high]), fill])


def _pad(w, a, x, given, gives):
    interior = a.sizes("interior")
    name, shape = x[0], list(given[0][1])
    for axis, gap in enumerate(interior):
        if isinstance(gap, int) and gap == 0:
            continue
        # Each element gets `gap` fills behind it; those of the last go.
        n = shape[axis]
        rank = len(shape) + 1
        apart = w.shaped(name, shape[:axis + 1] + [1] + shape[axis + 1:])
        behind = [0] * rank
        behind[axis + 1] = gap
        spread = padded(w, apart, x[1], [0] * rank, behind)
        shape[axis] = n * (gap + 1)
        name = w.shaped(spread, shape)
        if not (isinstance(n, int) and n == 0):
            shape[axis] = shape[axis] - gap
            name = w.add("Slice", [name, w.sizes([0]), w.sizes([shape[axis]]),
                                   w.integers([axis])])
    return padded(w, name, x[1], a.sizes("low"), a.sizes("high"))


def _concatenate(w, a, x, given, gives):
    return w.add("Concat", x, axis=a.integer("axis"))


# Reductions.

def _reduction(op: str):
    def build(w, a, x, given, gives):
        axes = a.integers("axes")
        if not axes:
            return w.add("Identity", x)
        return w.add(op, [x[0], w.integers(axes)], keepdims=0)
    return build


def _truths(op: str):
    def build(w, a, x, given, gives):
        axes = a.integers("axes")
        if not axes:
            return w.add("Identity", x)
        found = w.add(op, [w.cast(x[0], "i32"), w.integers(axes)], keepdims=0)
        return w.cast(found, "bool")
    return build


def _arg(op: str):
    def build(w, a, x, given, gives):
        axes = a.integers("axes")
        shape = given[0][1]
        rest = [d for d in range(len(shape)) if d not in axes]
        moved = w.add("Transpose", x, perm=rest + axes)
        count = 1
        for d in axes:
            count = count * shape[d]
        flat = w.shaped(moved, [shape[d] for d in rest] + [count])
        return w.add(op, [flat], axis=len(rest), keepdims=0)
    return build


# Contractions.

def _dot_general(w, a, x, given, gives):
    batch_a, batch_b = a.integers("batch_a"), a.integers("batch_b")
    contract_a, contract_b = a.integers("contract_a"), a.integers("contract_b")
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    left = [next(letters) for _ in given[0][1]]
    right = [""] * len(given[1][1])
    for p, q in zip(batch_a + contract_a, batch_b + contract_b):
        right[q] = left[p]
    right = [r or next(letters) for r in right]
    free_a = [s for d, s in enumerate(left) if d not in batch_a + contract_a]
    free_b = [s for d, s in enumerate(right) if d not in batch_b + contract_b]
    out = [left[d] for d in batch_a] + free_a + free_b
    dtype = gives[0][0]
    operands = x
    if dtype == "bool":
        raise UnimplementedError("`dot_general` of bool has no ONNX op")
    if dtype not in ("f16", "f32", "f64", "i32", "i64"):
        operands = [w.cast(v, "f32" if dtype == "bf16" else "i64") for v in x]
    made = w.add("Einsum", operands,
                 equation=f"{''.join(left)},{''.join(right)}->{''.join(out)}")
    return made if operands is x else w.cast(made, dtype)


def _conv(w, a, x, given, gives):
    dtype = gives[0][0]
    batches, groups = a.integer("batch_groups", 1), a.integer("groups", 1)
    shape = list(given[0][1])
    if batches != 1:
        # Groups of examples, each with kernels of its own, as channels.
        if groups != 1:
            raise UnimplementedError("`conv` with groups of channels and of "
                                     "examples has no ONNX op")
        each = shape[0] // batches
        rank = len(shape)
        name = w.shaped(x[0], [batches, each] + shape[1:])
        name = w.add("Transpose", [name],
                     perm=[1, 0] + list(range(2, rank + 1)))
        shape = [each, batches * shape[1]] + shape[2:]
        x = [w.shaped(name, shape), x[1]]
        groups = batches
    if dtype not in ("f16", "f32", "f64"):
        raise UnimplementedError(f"`conv` of {dtype} has no ONNX op")
    low, high = a.integers("low"), a.integers("high")
    spread = a.integers("lhs_dilation")
    name = x[0]
    if any(s != 1 for s in spread) or any(p < 0 for p in low + high):
        zero = w.number(0, dtype)
        attributes = type(a)("pad_general", {
            "interior": str([0, 0] + [s - 1 for s in spread]),
            "low": str([0, 0] + low), "high": str([0, 0] + high)})
        name = _pad(w, attributes, [name, zero], [(dtype, shape)], gives)
        low = high = [0] * len(low)
    return w.add("Conv", [name, x[1]], strides=a.integers("stride"),
                 dilations=a.integers("rhs_dilation"), pads=low + high,
                 group=groups)


PRIMITIVES = {
    "constant": _constant, "extent": _extent, "iota": _iota,
    "abs": _direct("Abs"), "neg": _direct("Neg"), "sign": _direct("Sign"),
    "ceil": _direct("Ceil"), "floor": _direct("Floor"),
    "round_nearest_even": _direct("Round"), "exp": _direct("Exp"),
    "expm1": _expm1, "log": _direct("Log"), "log1p": _log1p,
    "sqrt": _direct("Sqrt"), "rsqrt": _rsqrt, "cbrt": _cbrt,
    "sin": _direct("Sin"), "cos": _direct("Cos"), "tan": _direct("Tan"),
    "asin": _direct("Asin"), "acos": _direct("Acos"), "atan": _direct("Atan"),
    "sinh": _direct("Sinh"), "cosh": _direct("Cosh"),
    "tanh": _direct("Tanh"), "asinh": _direct("Asinh"),
    "acosh": _direct("Acosh"), "atanh": _direct("Atanh"),
    "sigmoid": _direct("Sigmoid"), "erf": _direct("Erf"),
    "erfc": _erfc,
    "erfinv": _refuse("ONNX has no inverse of erf"),
    "lgamma": _refuse("ONNX has no gamma function"),
    "polygamma": _refuse("ONNX has no gamma function"),
    "isnan": _isnan, "isinf": _isinf,
    "not": _bits_or_truths("Not", "BitwiseNot"),
    "and": _bits_or_truths("And", "BitwiseAnd"),
    "or": _bits_or_truths("Or", "BitwiseOr"),
    "xor": _bits_or_truths("Xor", "BitwiseXor"),
    "convert": _convert,
    "bitcast_convert": _refuse("opset 20 has no reading of bits"),
    "nograd": _direct("Identity"),
    "real": _refuse("ONNX has no arithmetic of complex numbers"),
    "imag": _refuse("ONNX has no arithmetic of complex numbers"),
    "complex": _refuse("ONNX has no arithmetic of complex numbers"),
    "add": _direct("Add"), "sub": _direct("Sub"), "mul": _direct("Mul"),
    "div": _direct("Div"), "floor_div": _floor_div,
    "floor_mod": _direct("Mod"), "rem": _rem, "pow": _direct("Pow"),
    "atan2": _refuse("ONNX has no angle of two numbers"),
    "copysign": _refuse("ONNX has no sign of a zero"),
    "nextafter": _refuse("ONNX has no neighbours of numbers"),
    "max": _direct("Max"), "min": _direct("Min"), "eq": _direct("Equal"),
    "ne": _ne, "lt": _direct("Less"), "le": _direct("LessOrEqual"),
    "gt": _direct("Greater"), "ge": _direct("GreaterOrEqual"),
    "shift_left": _shift("LEFT"), "shift_right": _shift("RIGHT"),
    "ldexp": _refuse("ONNX has no scaling by powers of 2"),
    "select": _direct("Where"), "fma": _fma,
    "broadcast_in_dim": _broadcast, "reshape": _reshape,
    "transpose": _transpose, "slice": _slice, "reverse": _reverse,
    "pad_general": _pad, "concatenate": _concatenate,
    "reduce_sum": _reduction("ReduceSum"),
    "reduce_prod": _reduction("ReduceProd"),
    "reduce_max": _reduction("ReduceMax"),
    "reduce_min": _reduction("ReduceMin"),
    "reduce_all": _truths("ReduceMin"), "reduce_any": _truths("ReduceMax"),
    "argmax": _arg("ArgMax"), "argmin": _arg("ArgMin"),
    "dot_general": _dot_general, "conv": _conv,
    "windows": export_indexing.windows,
    "windows_add": export_indexing.windows_add,
    "gather": export_indexing.gather, "scatter": export_indexing.scatter,
    "sort": export_indexing.sort, "nonzero": export_indexing.nonzero,
    "linear_scan": export_control.linear_scan,
    "cumulative_max": export_control.cumulative("Max"),
    "cumulative_min": export_control.cumulative("Min"),
    "scan": export_control.scan, "cond": export_control.cond,
    "while": export_control.while_loop,
    "random_bits": _refuse("its stream of random numbers is not ONNX's"),
    "random_uniform": _refuse("its stream of random numbers is not ONNX's"),
    "random_split": _refuse("its stream of random numbers is not ONNX's"),
    "random_fold_in": _refuse("its stream of random numbers is not ONNX's"),
}
