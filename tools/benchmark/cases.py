"""What tools/bench times: functions of functions.rules at given shapes."""

import array
import dataclasses
import math
import random

import truth


@dataclasses.dataclass(frozen=True)
class Array:
    dtype: str  # f32 or i64
    shape: tuple
    data: str = "normal"  # normal, positive, logarithm, or class:COUNT

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def bytes(self):
        return self.size * {"f32": 4, "i64": 8}[self.dtype]

    def __str__(self):
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    group: str  # the class in the report
    function: str
    inputs: tuple
    outputs: tuple
    truth: object  # of truth.py: inputs -> a Sample for each output
    transform: str = "none"
    # |output - truth| may be this, where the outputs are of about that size.
    tolerance: float = 1e-5
    flops: int = 0  # of contractions

    @property
    def shape(self):
        return str(self.inputs[0])

    @property
    def bytes(self):
        """What must be read and written at least."""
        return sum(a.bytes for a in self.inputs + self.outputs)


def f32(*shape, data="normal"):
    return Array("f32", shape, data)


def make_cases(scale=1):
    """All cases; extents are divided by `scale`, for a quick look."""

    def down(extent):
        return max(2, extent // scale)

    rows, columns = down(2048), down(1024)
    x, row, per_row = f32(rows, columns), f32(columns), f32(rows)
    target = Array("i64", (rows,), f"class:{columns}")
    logarithms = f32(rows, columns, data="logarithm")
    scalar = f32()
    weight = f32(columns, data="positive")
    cases = []

    def add(name, group, function, inputs, outputs, truth_of, **more):
        cases.append(
            Case(name, group, function, tuple(inputs), tuple(outputs),
                 truth_of, **more))

    add("softmax", "row", "softmax_rows", [x], [x], truth.softmax)
    add("log_softmax", "row", "log_softmax_rows", [x], [x], truth.log_softmax)
    add("layer_norm", "row", "layer_norm_rows", [x, weight, row], [x],
        truth.layer_norm)
    add("rms_norm", "row", "rms_norm_rows", [x, weight], [x], truth.rms_norm)
    add("gelu", "pointwise", "gelu_all", [x], [x], truth.gelu)
    add("mish", "pointwise", "mish_all", [x], [x], truth.mish)
    add("cross_entropy", "row", "cross_entropy_mean", [x, target], [scalar],
        truth.cross_entropy_mean)
    add("cross_entropy_each", "row", "cross_entropy_each", [x, target],
        [per_row], truth.cross_entropy_each)
    add("log_softmax_backward", "row", "log_softmax_backward", [x, logarithms],
        [x], truth.log_softmax_backward, tolerance=1e-4)
    add("softmax_jvp", "row", "softmax_rows", [x, x], [x, x],
        truth.softmax_jvp, transform="jvp")
    add("softmax_vmap", "row", "softmax_row", [x], [x], truth.softmax,
        transform="vmap")
    for name, outputs, truth_of in (("sum_axis_0", [row], truth.sum_axis_0),
                                    ("sum_axis_1", [per_row],
                                     truth.sum_axis_1),
                                    ("sum_all", [scalar], truth.sum_all)):
        add(name, "reduction", name, [x], outputs, truth_of,
            tolerance=1e-6 * rows)
    for extent in (64, 128, 192, 256, 512, 1024):
        n = down(extent)
        add(f"matmul_{extent}", "matmul", "matmul_2d", [f32(n, n), f32(n, n)],
            [f32(n, n)], truth.matmul, tolerance=1e-6 * n, flops=2 * n**3)
    n = down(4096)
    add("matrix_vector", "matmul", "matrix_vector", [f32(n, n), f32(n)],
        [f32(n)], truth.matrix_vector, tolerance=1e-6 * n)
    add("vector_matrix", "matmul", "vector_matrix", [f32(n), f32(n, n)],
        [f32(n)], truth.vector_matrix, tolerance=1e-6 * n)
    for batch, channels, side in ((1, 64, 56), (8, 256, 14)):
        c = down(channels)
        image = f32(batch, c, side, side)
        add(f"convolution_{channels}", "matmul", "convolution_3x3",
            [image, f32(c, c, 3, 3)], [image], truth.convolution_3x3,
            tolerance=1e-5 * c, flops=2 * image.size * c * 9)
    for b, i, o in ((128, 256, 256), (1024, 512, 512)):
        b, i, o = down(b), down(i), down(o)
        add(f"linear_gelu_{b}", "matmul", "linear_gelu",
            [f32(b, i), f32(o, i), f32(o)], [f32(b, o)], truth.linear_gelu,
            tolerance=1e-6 * i, flops=2 * b * i * o)
    flat = f32(down(1 << 24))
    add("chain_16m", "pointwise", "chain", [flat, flat], [flat], truth.chain)
    small = f32(4, 5)
    add("call_4x5", "overhead", "multiply_add", [small, small], [small],
        truth.multiply_add)
    return cases


# Distinct values; a prime number of them, so that rows differ.
_PERIOD = 65537


def make_data(what, seed):
    """The elements of an Array, as array.array."""
    generator = random.Random(seed)
    if what.data.startswith("class:"):
        count = int(what.data[len("class:"):])
        return array.array("q",
                           (generator.randrange(count)
                            for _ in range(what.size)))
    make = {
        "normal": lambda: generator.gauss(0, 1),
        "positive": lambda: 0.5 + generator.random(),
        "logarithm": lambda: -7 - abs(generator.gauss(0, 1)),
    }[what.data]
    period = array.array("f", (make() for _ in range(min(_PERIOD, what.size))))
    return (period * (what.size // _PERIOD + 1))[:what.size]
