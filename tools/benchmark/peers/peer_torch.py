"""PyTorch, eager or compiled."""

import torch
import torch.nn.functional as F


def layer_norm(x, w, bias):
    return F.layer_norm(x, (x.shape[-1],), w, bias)


def rms_norm(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, 1e-5)


def softmax(x):
    return torch.softmax(x, -1)


def log_softmax_backward(dy, y):
    return torch.ops.aten._log_softmax_backward_data(dy, y, -1, torch.float32)


def chain(x, y):
    a = torch.maximum(x * 1.5 + 0.25, y)
    return (a * a - x) / (1 + torch.abs(y)) + 0.5


def scatter_rows(x, ids, v):
    return x.index_add(0, ids, v)


def lstm_layer(xs, h, c, wx, wh, bias):
    return torch.lstm(xs, (h[None], c[None]), (wx, wh, bias,
                                               torch.zeros_like(bias)), True, 1,
                      0.0, torch.is_grad_enabled(), False, False)[0]


def jvp(function, count):
    """Results of a function of so many arguments, and their tangents; the
    tangents of the arguments stand behind these."""

    def call(*arguments):
        results, tangents = torch.func.jvp(function, arguments[:count],
                                           arguments[count:])
        if isinstance(results, torch.Tensor):
            return results, tangents
        return (*results, *tangents)

    return call


def vjp(function):
    """Results and gradients of a function, by its floats; the last argument is
    the cotangent."""

    def call(*arguments):
        with torch.enable_grad():
            inputs = [x.detach() for x in arguments[:-1]]
            floats = [x.requires_grad_() for x in inputs
                      if x.is_floating_point()]
            y = function(*inputs)
            return (y.detach(),
                    *torch.autograd.grad(y, floats, arguments[-1]))

    call.of = function
    return call


def squared_network(x, v, w):
    y = torch.tanh(torch.tanh(0.06 * (x @ v)) @ w * 0.06)
    return (y * y).sum()


network_gradients = torch.func.grad(squared_network, (1, 2))


def convolution_3x3(x, w):
    return F.conv2d(x, w, padding=1)


def linear_gelu(x, w, bias):
    return F.gelu(F.linear(x, w, bias))


def max_pool_3x3(x):
    return F.max_pool2d(x, 3, 2, 1)


def bilinear_twice(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear")


def roll_rows(x):
    return torch.roll(x, (100, 100), (0, 1))


def linear_of_heads(o, w):
    return F.linear(o.transpose(1, 2).flatten(2), w)


def adam_step(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.1) / (torch.sqrt(v / 0.001) + 1e-8), m, v


def rotary(x, cosine, sine):
    near, far = x.chunk(2, -1)
    return torch.cat([near * cosine - far * sine, far * cosine + near * sine],
                     -1)


def gated_rows(x):
    gate, other = x.chunk(2, -1)
    return F.silu(gate) * other


def group_norm_32(x, w, bias):
    return F.group_norm(x, 32, w, bias)


class Peer:
    FUNCTIONS = {
        "softmax_rows": softmax,
        "vmap(softmax_row)": torch.vmap(softmax),
        "jvp(softmax_rows)": jvp(softmax, 1),
        "log_softmax_rows": lambda x: torch.log_softmax(x, -1),
        "log_softmax_backward": log_softmax_backward,
        "layer_norm_rows": layer_norm,
        "rms_norm_rows": rms_norm,
        "gelu_all": F.gelu,
        "mish_all": F.mish,
        "cross_entropy_mean": F.cross_entropy,
        "cross_entropy_each": lambda x, target: F.cross_entropy(
            x, target, reduction="none"),
        "matmul_2d": torch.matmul,
        "convolution_3x3": convolution_3x3,
        "vjp(convolution_3x3)": vjp(convolution_3x3),
        "convolution_groups": lambda x, w: F.conv2d(x, w, padding=1, groups=32),
        "matrix_vector": torch.mv,
        "vector_matrix": torch.matmul,
        "linear_gelu": linear_gelu,
        "sum_axis_0": lambda x: x.sum(0),
        "sum_axis_1": lambda x: x.sum(1),
        "sum_all": lambda x: x.sum(),
        "var_axis_1": lambda x: x.var(1),
        "argmax_axis_1": lambda x: x.argmax(1).float(),
        "transpose_2d": lambda x: x.t().contiguous(),
        "concatenate_rows": lambda x, y: torch.cat([x, y], 1),
        "cumsum_line": lambda x: x.cumsum(0),
        "cumsum_rows": lambda x: x.cumsum(1),
        "matmul_batched": torch.bmm,
        "convolution_1x1": F.conv2d,
        "convolution_line": lambda x, w: F.conv1d(x, w, padding=2),
        "convolution_volume": lambda x, w: F.conv3d(x, w, padding=1),
        "vjp(embedding_rows)": vjp(lambda w, ids: F.embedding(ids, w)),
        "convolution_depthwise": lambda x, w: F.conv2d(
            x, w, padding=1, groups=x.shape[1]),
        "max_pool_2x2": lambda x: F.max_pool2d(x, 2),
        "max_pool_3x3": max_pool_3x3,
        "attention": F.scaled_dot_product_attention,
        "attention_causal": lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=True),
        "embedding_sum": lambda w, ids: F.embedding_bag(ids, w, mode="sum"),
        "scatter_rows": scatter_rows,
        "distances": torch.cdist,
        "nearest_square": lambda x, z: torch.cdist(x, z).min(1).values.square(),
        "top_rows": lambda x: x.topk(16, 1).values,
        "bilinear_twice": bilinear_twice,
        "vjp(bilinear_twice)": vjp(bilinear_twice),
        "roll_rows": roll_rows,
        "vjp(roll_rows)": vjp(roll_rows),
        "vjp(distances)": vjp(torch.cdist),
        "cumprod_rows": lambda x: x.cumprod(1),
        "logcumsumexp_rows": lambda x: x.logcumsumexp(1),
        "lgamma_all": torch.lgamma,
        "vjp(lgamma_all)": vjp(torch.lgamma),
        "vjp(top_rows)": vjp(lambda x: x.topk(16, 1).values),
        "sort_rows": lambda x: x.sort(1).values,
        "lstm_layer": lstm_layer,
        "vjp(softmax_rows)": vjp(softmax),
        "vjp(layer_norm_rows)": vjp(layer_norm),
        "vjp(cross_entropy_mean)": vjp(F.cross_entropy),
        "vjp(gelu_all)": vjp(F.gelu),
        "vjp(linear_gelu)": vjp(linear_gelu),
        "vjp(max_pool_3x3)": vjp(max_pool_3x3),
        "vjp(attention)": vjp(F.scaled_dot_product_attention),
        "vjp(attention_causal)": vjp(
            lambda q, k, v: F.scaled_dot_product_attention(
                q, k, v, is_causal=True)),
        "network_gradients": network_gradients,
        "jvp(network_gradients)": jvp(network_gradients, 3),
        "vjp(lstm_layer)": vjp(lstm_layer),
        "convolution_transposed": lambda x, w: F.conv_transpose2d(
            x, w, stride=2, padding=1),
        "linear_of_heads": linear_of_heads,
        "layer_norm_of_one": layer_norm,
        "gelu_f16": F.gelu,
        "softmax_f16": softmax,
        "layer_norm_f16": layer_norm,
        "lerp_f16": torch.lerp,
        "matmul_f16": torch.matmul,
        "gelu_f64": F.gelu,
        "log_f64": torch.log,
        "sigmoid_f64": torch.sigmoid,
        "remainder_all": torch.remainder,
        "scatter_elements": lambda x, at, v: x.scatter_add(1, at, v),
        "adam_step": adam_step,
        "rotary": rotary,
        "vjp(gated_rows)": vjp(gated_rows),
        "group_norm_32": group_norm_32,
        "vjp(group_norm_32)": vjp(group_norm_32),
        "norm_rows": lambda x: torch.linalg.vector_norm(x, dim=1),
        "sin_all": torch.sin,
        "sin_f64": torch.sin,
        "atan2_f64": torch.atan2,
        "mean_pool_2x2": lambda x: F.avg_pool2d(x, 2),
        "vjp(mean_pool_8x8)": vjp(lambda x: F.avg_pool2d(x, 8)),
        "chain": chain,
        "multiply_add": lambda x, y: x * y + x,
    }

    def __init__(self, threads, compiled):
        torch.set_num_threads(threads)
        self.compiles = compiled
        self.version = f"PyTorch {torch.__version__}"
        if compiled:
            # Its compile times are of new functions, not of found ones.
            torch._inductor.config.force_disable_caches = True
            # The processes it compiles with take as long to start.
            torch._inductor.config.compile_threads = 1
            # Starts what it starts once.
            self.compile(lambda x: x + 1, [torch.zeros(64)])

    @staticmethod
    def array(data, dtype, shape):
        dtype = {
            "f16": torch.float16,
            "f32": torch.float32,
            "f64": torch.float64,
            "i64": torch.int64
        }[dtype]
        return torch.frombuffer(bytearray(data),
                                dtype=dtype).reshape(shape).clone()

    @staticmethod
    def bytes(output):
        return output.contiguous().numpy().tobytes()

    def compile(self, function, arrays):
        if self.compiles:
            torch._dynamo.reset()
            # Gradients are taken of what is compiled.
            of = getattr(function, "of", function)
            compiled = torch.compile(of, dynamic=False, fullgraph=True)
            function = compiled if of is function else vjp(compiled)

        def call():
            with torch.no_grad():
                return function(*arrays)

        call()
        return call
