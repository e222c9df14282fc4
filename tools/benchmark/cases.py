"""What tools/bench times: functions of functions.rules at given shapes."""

import array
import dataclasses
import math
import random
import struct

import truth
import truth_of_blocks as blocks
import truth_of_dtypes as dtypes
import truth_of_gradients as gradients
import truth_of_layers as layers
import truth_of_places as places


# Bytes of an element.
_SIZES = {"f16": 2, "f32": 4, "f64": 8, "i64": 8}


@dataclasses.dataclass(frozen=True)
class Array:
    dtype: str  # of _SIZES
    shape: tuple
    data: str = "normal"  # normal, small, positive, logarithm, class:COUNT

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def bytes(self):
        return self.size * _SIZES[self.dtype]

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
    add_shapes(add, down)
    add_blocks(add, down)
    add_training(add, down)
    add_places(add, down)
    add_windows(add, down)
    add_dtypes(add, down)
    add_layers(add, down)
    flat = f32(down(1 << 24))
    add("chain_16m", "pointwise", "chain", [flat, flat], [flat], truth.chain)
    small = f32(4, 5)
    add("call_4x5", "overhead", "multiply_add", [small, small], [small],
        truth.multiply_add)
    return cases


def add_shapes(add, down):
    """Row and column work at extents that are thin, wide or odd."""
    for name, rows, columns in (("narrow", 65536, 32), ("wide", 8, 131072),
                                ("odd", 2047, 1021)):
        x = f32(down(rows), down(columns))
        add(f"softmax_{name}", "row", "softmax_rows", [x], [x], truth.softmax)
    tall, thin = f32(down(1000000), 4), f32(down(1000000), 64)
    add("sum_axis_1_tall", "reduction", "sum_axis_1", [tall],
        [f32(tall.shape[0])], truth.sum_axis_1)
    add("sum_axis_0_tall", "reduction", "sum_axis_0", [tall], [f32(4)],
        truth.sum_axis_0, tolerance=1e-3)
    add("sum_axis_0_thin", "reduction", "sum_axis_0", [thin],
        [f32(thin.shape[1])], truth.sum_axis_0, tolerance=1e-3)
    x, per_row = f32(down(2048), down(1024)), f32(down(2048))
    add("var_axis_1", "reduction", "var_axis_1", [x], [per_row],
        blocks.var_axis_1)
    add("argmax_axis_1", "reduction", "argmax_axis_1", [x], [per_row],
        blocks.argmax_axis_1)
    line = f32(down(1000000))
    add("cumsum_line", "scan", "cumsum_line", [line], [line],
        blocks.cumsum_line, tolerance=1e-3)
    add("cumsum_rows", "scan", "cumsum_rows", [x], [x], blocks.cumsum_rows,
        tolerance=1e-4)


def add_blocks(add, down):
    """What moves, chooses and contracts blocks."""
    x = f32(down(2048), down(2048))
    add("transpose_2048", "movement", "transpose_2d", [x],
        [f32(*reversed(x.shape))], blocks.transpose_2d)
    x, y = f32(down(2048), down(1000)), f32(down(2048), down(24))
    both = f32(x.shape[0], x.shape[1] + y.shape[1])
    add("concatenate", "movement", "concatenate_rows", [x, y], [both],
        blocks.concatenate_rows)
    words, width = down(50000), 64
    table, ids = f32(words, width), Array("i64", (down(4096), 16),
                                          f"class:{words}")
    add("embedding_sum", "indexing", "embedding_sum", [table, ids],
        [f32(ids.shape[0], width)], blocks.embedding_sum)
    places = Array("i64", (down(65536),), f"class:{words}")
    add("scatter_rows", "indexing", "scatter_rows",
        [table, places, f32(places.size, width)], [table],
        blocks.scatter_rows, tolerance=1e-4)
    rows = f32(down(1024), down(1024))
    add("sort_rows", "indexing", "sort_rows", [rows], [rows],
        blocks.sort_rows)
    add("top_16", "indexing", "top_rows", [rows], [f32(rows.shape[0], 16)],
        blocks.top_rows)
    small = f32(down(100000), 4, 4)
    add("matmul_4x4", "matmul", "matmul_batched", [small, small], [small],
        blocks.matmul_batched)
    add("matmul_row", "matmul", "matmul_2d",
        [f32(1, down(4096)), f32(down(4096), down(4096))],
        [f32(1, down(4096))], truth.matmul, tolerance=4e-3)
    image, c = f32(1, down(64), 56, 56), down(64)
    add("convolution_1x1", "convolution", "convolution_1x1",
        [image, f32(c, c, 1, 1)], [image], blocks.convolution_1x1,
        tolerance=1e-4, flops=2 * image.size * c)
    image, w = f32(8, 32 * down(8), 14, 14), f32(32 * down(8), down(8), 3, 3)
    add("convolution_groups", "convolution", "convolution_groups", [image, w],
        [image], blocks.convolution_groups, tolerance=1e-4,
        flops=2 * image.size * w.shape[1] * 9)
    for batch, channels, side in ((1, 64, 56), (8, 256, 14)):
        c = down(channels)
        image, w = f32(batch, c, side, side), f32(c, c, 3, 3)
        add(f"convolution_vjp_{channels}", "convolution", "convolution_3x3",
            [image, w, image], [image, image, w], blocks.convolution_3x3_vjp,
            transform="vjp", tolerance=1e-4 * math.sqrt(image.size),
            flops=6 * image.size * c * 9)
    wide = f32(1, down(128), 56, 56)
    add("convolution_depthwise", "convolution", "convolution_depthwise",
        [wide, f32(wide.shape[1], 1, 3, 3)], [wide],
        blocks.convolution_depthwise)
    large = f32(8, down(64), 56, 56)
    add("max_pool", "convolution", "max_pool_2x2", [large],
        [f32(8, down(64), 28, 28)], blocks.max_pool_2x2)
    add("max_pool_3x3", "convolution", "max_pool_3x3", [large],
        [f32(8, down(64), 28, 28)], blocks.max_pool_3x3)
    for name in ("attention", "attention_causal"):
        for suffix, heads, length in (("", 8, 512), ("_long", 2, 2048)):
            head = f32(1, down(heads), down(length), 64)
            add(name + suffix, "attention", name, [head, head, head], [head],
                getattr(blocks, name), flops=4 * head.size * head.shape[2])
    points, others = f32(down(1024), 64), f32(down(1000), 64)
    add("distances", "distance", "distances", [points, others],
        [f32(points.shape[0], others.shape[0])], blocks.distances)
    add("nearest", "distance", "nearest_square", [points, others],
        [f32(points.shape[0])], blocks.nearest_square)
    steps, batch, hidden = down(128), 8, down(128)
    state = f32(batch, hidden)
    add("lstm_128", "scan", "lstm_layer", [
        f32(steps, batch, hidden), state, state,
        f32(4 * hidden, hidden, data="small"),
        f32(4 * hidden, hidden, data="small"),
        f32(4 * hidden)
    ], [f32(steps, batch, hidden)], blocks.lstm_layer, tolerance=1e-4,
        flops=2 * steps * batch * 8 * hidden * hidden)


def add_training(add, down):
    """Gradients, and what training and generating do beside them."""
    x, row = f32(down(2048), down(1024)), f32(down(1024))
    target = Array("i64", (x.shape[0],), f"class:{row.size}")
    weight = f32(row.size, data="positive")
    scalar = f32()
    for name, function, group, inputs, outputs, tolerance in (
        ("softmax", "softmax_rows", "row", [x], [x], 1e-5),
        ("layer_norm", "layer_norm_rows", "row", [x, weight, row], [x], 1e-3),
        ("cross_entropy", "cross_entropy_mean", "row", [x, target], [scalar],
         1e-5),
        ("gelu", "gelu_all", "pointwise", [x], [x], 1e-5),
    ):
        add(f"{name}_vjp", group, function, inputs + outputs,
            outputs + [a for a in inputs if a.dtype == "f32"],
            getattr(gradients, f"{name}_vjp"), transform="vjp",
            tolerance=tolerance)
    b, i, o = down(128), down(256), down(256)
    inputs = [f32(b, i), f32(o, i), f32(o)]
    add("linear_gelu_vjp", "matmul", "linear_gelu", inputs + [f32(b, o)],
        [f32(b, o), *inputs], gradients.linear_gelu_vjp, transform="vjp",
        tolerance=1e-3, flops=6 * b * i * o)
    v, w = f32(i, down(256)), f32(down(256), down(128))
    flops = 2 * b * (2 * v.size + 3 * w.size)
    add("network_gradients", "matmul", "network_gradients", [f32(b, i), v, w],
        [v, w], gradients.network_gradients, tolerance=1e-4, flops=flops)
    add("hessian_vector", "matmul", "network_gradients",
        [f32(b, i), v, w] * 2, [v, w] * 2, gradients.network_gradients_jvp,
        transform="jvp", tolerance=1e-3, flops=3 * flops)
    image, pooled = f32(8, down(64), 56, 56), f32(8, down(64), 28, 28)
    add("max_pool_3x3_vjp", "convolution", "max_pool_3x3", [image, pooled],
        [pooled, image], gradients.max_pool_3x3_vjp, transform="vjp")
    c, o = down(64), down(32)
    add("convolution_transposed", "convolution", "convolution_transposed",
        [f32(1, c, 28, 28), f32(c, o, 4, 4)], [f32(1, o, 56, 56)],
        gradients.convolution_transposed, tolerance=1e-4,
        flops=2 * 56 * 56 * o * c * 4)
    head = f32(1, down(8), down(512), 64)
    length, width = head.shape[2], 64 * head.shape[1]
    for name in ("attention", "attention_causal"):
        add(f"{name}_vjp", "attention", name, [head] * 4, [head] * 4,
            getattr(gradients, f"{name}_vjp"), transform="vjp", tolerance=1e-4,
            flops=10 * head.size * length)
    add("linear_of_heads", "matmul", "linear_of_heads",
        [head, f32(width, width)], [f32(1, length, width)],
        gradients.linear_of_heads, tolerance=1e-3,
        flops=2 * length * width * width)
    one, row = f32(1, down(512), down(512)), f32(down(512))
    add("layer_norm_of_one", "row", "layer_norm_of_one", [one, row, row],
        [one], gradients.layer_norm_of_one)
    steps, batch, hidden = down(64), 8, down(64)
    state, sequence = f32(batch, hidden), f32(steps, batch, hidden)
    matrix = f32(4 * hidden, hidden, data="small")
    inputs = [sequence, state, state, matrix, matrix, f32(4 * hidden)]
    add("lstm_vjp", "scan", "lstm_layer", inputs + [sequence],
        [sequence] + inputs, gradients.lstm_vjp, transform="vjp",
        tolerance=1e-3, flops=6 * steps * batch * 8 * hidden * hidden)
    length, channels, states = down(512), down(256), 16
    x, b = f32(length, channels), f32(length, states)
    step = f32(length, channels, data="positive")
    add("selective_scan", "scan", "selective_scan",
        [x, step, f32(channels, states, data="logarithm"), b, b], [x],
        gradients.selective_scan, tolerance=1e-4)
    flat = f32(down(1 << 20))
    add("adam_step", "pointwise", "adam_step",
        [flat, flat, flat, f32(flat.size, data="positive")], [flat] * 3,
        gradients.adam_step)


def add_places(add, down):
    """What reads elements at other places, or one after the other."""
    image = f32(8, down(16), 64, 64)
    larger = f32(8, image.shape[1], 128, 128)
    add("bilinear", "indexing", "bilinear_twice", [image], [larger],
        places.bilinear_twice)
    add("bilinear_vjp", "indexing", "bilinear_twice", [image, larger],
        [larger, image], places.bilinear_twice_vjp, transform="vjp")
    x = f32(down(2048), down(1024))
    add("roll", "movement", "roll_rows", [x], [x], places.roll_rows)
    add("roll_vjp", "movement", "roll_rows", [x, x], [x, x],
        places.roll_rows_vjp, transform="vjp")
    points, others = f32(down(1024), 64), f32(down(1000), 64)
    add("distances_vjp", "distance", "distances",
        [points, others, f32(points.shape[0], others.shape[0])],
        [f32(points.shape[0], others.shape[0]), points, others],
        places.distances_vjp, transform="vjp", tolerance=1e-4)
    factors = f32(down(2048), down(1024), data="positive")
    add("cumprod_rows", "scan", "cumprod_rows", [factors], [factors],
        places.cumprod_rows)
    add("logcumsumexp_rows", "scan", "logcumsumexp_rows", [x], [x],
        places.logcumsumexp_rows)
    add("lgamma", "pointwise", "lgamma_all", [factors], [factors],
        places.lgamma_all)
    add("lgamma_vjp", "pointwise", "lgamma_all", [factors, factors],
        [factors, factors], places.lgamma_all_vjp, transform="vjp")
    few = f32(x.shape[0], min(16, x.shape[1]))
    add("top_rows_vjp", "indexing", "top_rows", [x, few], [few, x],
        places.top_rows_vjp, transform="vjp")


def add_windows(add, down):
    """Convolutions of lines and volumes, and of several images."""
    line, w = f32(8, down(64), 1024), f32(down(128), down(64), 5)
    result = f32(8, w.shape[0], 1024)
    add("convolution_line", "convolution", "convolution_line", [line, w],
        [result], places.convolution, tolerance=1e-4,
        flops=2 * result.size * w.shape[1] * 5)
    volume, w = f32(2, down(16), 16, 28, 28), f32(down(32), down(16), 3, 3, 3)
    result = f32(2, w.shape[0], 16, 28, 28)
    add("convolution_volume", "convolution", "convolution_volume", [volume, w],
        [result], places.convolution, tolerance=1e-4,
        flops=2 * result.size * w.shape[1] * 27)
    images, w = f32(8, down(64), 56, 56), f32(down(64), down(64), 3, 3)
    add("convolution_images", "convolution", "convolution_3x3", [images, w],
        [images], places.convolution, tolerance=1e-4,
        flops=2 * images.size * w.shape[1] * 9)
    words = down(50000)
    table = f32(words, down(128))
    ids = Array("i64", (down(4096),), f"class:{words}")
    rows = f32(ids.size, table.shape[1])
    add("embedding_vjp", "indexing", "embedding_rows", [table, ids, rows],
        [rows, table], places.embedding_rows_vjp, transform="vjp",
        tolerance=1e-5)


def add_dtypes(add, down):
    """Halves and doubles, and remainders and scatters by element."""
    shape = down(2048), down(1024)
    x, row = Array("f16", shape), Array("f16", shape[1:])
    half = {"tolerance": 2e-3}
    add("gelu_f16", "halves", "gelu_f16", [x], [x], truth.gelu, **half)
    add("softmax_f16", "halves", "softmax_f16", [x], [x], truth.softmax, **half)
    add("layer_norm_f16", "halves", "layer_norm_f16", [x, row, row], [x],
        dtypes.layer_norm, tolerance=4e-3)
    add("lerp_f16", "halves", "lerp_f16", [x, x, x], [x], dtypes.lerp,
        tolerance=1e-2)
    n = down(512)
    square = Array("f16", (n, n))
    add("matmul_f16", "halves", "matmul_f16", [square, square], [square],
        truth.matmul, tolerance=1e-2, flops=2 * n**3)
    x = Array("f64", shape)
    for name in ("gelu", "log", "sigmoid"):
        data = Array("f64", shape, "positive") if name == "log" else x
        add(f"{name}_f64", "doubles", f"{name}_f64", [data], [x],
            getattr(dtypes, name), tolerance=1e-14)
    x = f32(*shape)
    add("remainder", "pointwise", "remainder_all",
        [x, f32(*shape, data="positive")], [x], dtypes.remainder)
    x, few = f32(down(8192), down(512)), down(64)
    places = Array("i64", (x.shape[0], few), f"class:{x.shape[1]}")
    add("scatter_elements", "indexing", "scatter_elements",
        [x, places, f32(*places.shape)], [x], dtypes.scatter_elements)


def add_layers(add, down):
    """Embeddings that turn, units with a gate, groups, means and sines."""
    heads = f32(1, 8, down(512), 64)
    turns = f32(heads.shape[2], 32)
    add("rotary", "movement", "rotary", [heads, turns, turns], [heads],
        layers.rotary)
    x, y = f32(down(2048), down(2048)), f32(down(2048), down(2048) // 2)
    add("gated_vjp", "pointwise", "gated_rows", [x, y], [y, x],
        layers.gated_rows_vjp, transform="vjp")
    image, w = f32(2, 32 * down(10), 64, 64), f32(32 * down(10))
    inputs = [image, w, w]
    add("group_norm", "row", "group_norm_32", inputs, [image],
        layers.group_norm)
    add("group_norm_vjp", "row", "group_norm_32", inputs + [image],
        [image] + inputs, layers.group_norm_vjp, transform="vjp",
        tolerance=1e-3)
    x = f32(down(2048), down(1024))
    add("norm_rows", "reduction", "norm_rows", [x], [f32(x.shape[0])],
        layers.norm_rows, tolerance=1e-4)
    add("sin", "pointwise", "sin_all", [x], [x], layers.sin)
    doubles = Array("f64", x.shape)
    add("sin_f64", "doubles", "sin_f64", [doubles], [doubles], layers.sin,
        tolerance=1e-14)
    add("atan2_f64", "doubles", "atan2_f64", [doubles, doubles], [doubles],
        layers.atan2, tolerance=1e-14)
    image = f32(8, down(64), 56, 56)
    add("mean_pool", "convolution", "mean_pool_2x2", [image],
        [f32(8, down(64), 28, 28)], layers.mean_pool_2x2)
    pooled = f32(8, down(64), 7, 7)
    add("mean_pool_8x8_vjp", "convolution", "mean_pool_8x8", [image, pooled],
        [pooled, image], layers.mean_pool_8x8_vjp, transform="vjp")


# Distinct values; a prime number of them, so that rows differ.
_PERIOD = 65537


def make_data(what, seed):
    """The elements of an Array, as array.array; halves as floats."""
    generator = random.Random(seed)
    if what.data.startswith("class:"):
        count = int(what.data[len("class:"):])
        return array.array("q",
                           (generator.randrange(count)
                            for _ in range(what.size)))
    make = {
        "normal": lambda: generator.gauss(0, 1),
        "small": lambda: 0.1 * generator.gauss(0, 1),
        "positive": lambda: 0.5 + generator.random(),
        "logarithm": lambda: -7 - abs(generator.gauss(0, 1)),
    }[what.data]
    values = [make() for _ in range(min(_PERIOD, what.size))]
    if what.dtype == "f16":
        form = f"{len(values)}e"
        values = struct.unpack(form, struct.pack(form, *values))
    period = array.array("d" if what.dtype == "f64" else "f", values)
    return (period * (what.size // _PERIOD + 1))[:what.size]


def to_bytes(what, elements):
    """The elements of an Array as files have them."""
    if what.dtype == "f16":
        return struct.pack(f"{len(elements)}e", *elements)
    return elements.tobytes()


def from_bytes(what, data):
    """The elements of an Array of floats."""
    if what.dtype == "f16":
        return struct.unpack(f"{len(data) // 2}e", data)
    elements = array.array("d" if what.dtype == "f64" else "f")
    elements.frombytes(data)
    return elements
