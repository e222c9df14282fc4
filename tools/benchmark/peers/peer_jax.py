"""JAX, compiled for the CPU."""

import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def layer_norm(x, w, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean)**2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w + bias


def rms_norm(x, w):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def cross_entropy(x, target):
    logarithms = jax.nn.log_softmax(x)
    return -jnp.take_along_axis(logarithms, target[:, None], axis=1)[:, 0]


def log_softmax_backward(dy, y):
    return dy - jnp.exp(y) * dy.sum(-1, keepdims=True)


def chain(x, y):
    a = jnp.maximum(x * 1.5 + 0.25, y)
    return (a * a - x) / (1 + jnp.abs(y)) + 0.5


def jvp(function, count):
    """Results and tangents, as of the peer of PyTorch."""

    def call(*arguments):
        results, tangents = jax.jvp(function, arguments[:count],
                                    arguments[count:])
        return jax.tree.leaves((results, tangents))

    return call


def vjp(function):
    """Results and gradients, as of the peer of PyTorch."""

    def call(*arguments):
        inputs = arguments[:-1]
        floats = [i for i, x in enumerate(inputs)
                  if jnp.issubdtype(x.dtype, jnp.floating)]

        def of_floats(*values):
            full = list(inputs)
            for i, value in zip(floats, values):
                full[i] = value
            return function(*full)

        y, pull = jax.vjp(of_floats, *(inputs[i] for i in floats))
        return (y, *pull(arguments[-1]))

    return call


def convolution_3x3(x, w):
    return jax.lax.conv(x, w, (1, 1), "SAME")


def squared_network(x, v, w):
    return (jnp.tanh(jnp.tanh(0.06 * (x @ v)) @ w * 0.06)**2).sum()


network_gradients = jax.grad(squared_network, (1, 2))


def convolution_groups(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME",
                                        feature_group_count=32)


def convolution_depthwise(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME",
                                        feature_group_count=x.shape[1])


def max_pool_2x2(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2),
                                 (1, 1, 2, 2), "VALID")


def max_pool_3x3(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3),
                                 (1, 1, 2, 2),
                                 ((0, 0), (0, 0), (1, 1), (1, 1)))


def bilinear_twice(x):
    height, width = x.shape[2:]
    return jax.image.resize(x, (*x.shape[:2], 2 * height, 2 * width),
                            "bilinear")


def roll_rows(x):
    return jnp.roll(x, (100, 100), (0, 1))


def attention(q, k, v, is_causal=False):
    # Heads lie inside of the length there.
    q, k, v = (a.swapaxes(1, 2) for a in (q, k, v))
    y = jax.nn.dot_product_attention(q, k, v, is_causal=is_causal)
    return y.swapaxes(1, 2)


def squares(x, z):
    products = x @ z.T
    return jnp.maximum((x * x).sum(1)[:, None] + (z * z).sum(1) - 2 * products,
                       0)


def lstm_layer(xs, h, c, wx, wh, bias):

    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x + h @ wh.T, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return jax.lax.scan(step, (h, c), xs @ wx.T + bias)[1]


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def linear_gelu(x, w, bias):
    return gelu(x @ w.T + bias)


def cross_entropy_mean(x, target):
    return cross_entropy(x, target).mean()


def convolution_transposed(x, w):
    return jax.lax.conv_general_dilated(
        x, jnp.flip(w, (2, 3)).swapaxes(0, 1), (1, 1), ((2, 2), (2, 2)),
        lhs_dilation=(2, 2))


def linear_of_heads(o, w):
    batch, heads, length, width = o.shape
    return o.swapaxes(1, 2).reshape(batch, length, heads * width) @ w.T


def selective_scan(x, step, a, b, c):

    def one(state, slices):
        x, step, b, c = slices
        state = (jnp.exp(step[:, None] * a) * state +
                 (step * x)[:, None] * b)
        return state, state @ c

    return jax.lax.scan(one, jnp.zeros_like(a), (x, step, b, c))[1]


def adam_step(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8), m, v


def rotary(x, cosine, sine):
    near, far = jnp.split(x, 2, axis=-1)
    return jnp.concatenate(
        [near * cosine - far * sine, far * cosine + near * sine], axis=-1)


def gated_rows(x):
    gate, other = jnp.split(x, 2, axis=-1)
    return jax.nn.silu(gate) * other


def group_norm_32(x, w, bias):
    grouped = x.reshape(x.shape[0], 32, -1)
    mean = grouped.mean(-1, keepdims=True)
    variance = ((grouped - mean)**2).mean(-1, keepdims=True)
    y = ((grouped - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return y * w[:, None, None] + bias[:, None, None]


def mean_pool(size):

    def pool(x):
        window = (1, 1, size, size)
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, window, window,
                                     "VALID") / size**2

    return pool


class Peer:
    FUNCTIONS = {
        "softmax_rows": jax.nn.softmax,
        "vmap(softmax_row)": jax.vmap(jax.nn.softmax),
        "jvp(softmax_rows)": jvp(jax.nn.softmax, 1),
        "log_softmax_rows": jax.nn.log_softmax,
        "log_softmax_backward": log_softmax_backward,
        "layer_norm_rows": layer_norm,
        "rms_norm_rows": rms_norm,
        "gelu_all": gelu,
        "mish_all": jax.nn.mish,
        "cross_entropy_mean": cross_entropy_mean,
        "cross_entropy_each": cross_entropy,
        "matmul_2d": jnp.matmul,
        "convolution_3x3": convolution_3x3,
        "vjp(convolution_3x3)": vjp(convolution_3x3),
        "convolution_groups": convolution_groups,
        "matrix_vector": jnp.matmul,
        "vector_matrix": jnp.matmul,
        "linear_gelu": linear_gelu,
        "sum_axis_0": lambda x: x.sum(0),
        "sum_axis_1": lambda x: x.sum(1),
        "sum_all": lambda x: x.sum(),
        "var_axis_1": lambda x: x.var(1, ddof=1),
        "argmax_axis_1": lambda x: x.argmax(1).astype(jnp.float32),
        "transpose_2d": jnp.transpose,
        "concatenate_rows": lambda x, y: jnp.concatenate([x, y], 1),
        "cumsum_line": jnp.cumsum,
        "cumsum_rows": lambda x: jnp.cumsum(x, 1),
        "matmul_batched": jnp.matmul,
        "convolution_1x1": lambda x, w: jax.lax.conv(x, w, (1, 1), "VALID"),
        "convolution_line": lambda x, w: jax.lax.conv(x, w, (1,), "SAME"),
        "convolution_volume":
            lambda x, w: jax.lax.conv(x, w, (1, 1, 1), "SAME"),
        "vjp(embedding_rows)": vjp(lambda w, ids: w[ids]),
        "convolution_depthwise": convolution_depthwise,
        "max_pool_2x2": max_pool_2x2,
        "max_pool_3x3": max_pool_3x3,
        "attention": attention,
        "attention_causal": lambda q, k, v: attention(q, k, v, True),
        "embedding_sum": lambda w, ids: w[ids].sum(1),
        "scatter_rows": lambda x, ids, v: x.at[ids].add(v),
        "distances": lambda x, z: jnp.sqrt(squares(x, z)),
        "nearest_square": lambda x, z: squares(x, z).min(1),
        "top_rows": lambda x: jax.lax.top_k(x, 16)[0],
        "bilinear_twice": bilinear_twice,
        "vjp(bilinear_twice)": vjp(bilinear_twice),
        "roll_rows": roll_rows,
        "vjp(roll_rows)": vjp(roll_rows),
        "vjp(distances)": vjp(lambda x, z: jnp.sqrt(squares(x, z))),
        "cumprod_rows": lambda x: jnp.cumprod(x, 1),
        "logcumsumexp_rows": lambda x: jax.lax.cumlogsumexp(x, 1),
        "lgamma_all": jax.lax.lgamma,
        "vjp(lgamma_all)": vjp(jax.lax.lgamma),
        "vjp(top_rows)": vjp(lambda x: jax.lax.top_k(x, 16)[0]),
        "sort_rows": lambda x: jnp.sort(x, 1),
        "lstm_layer": lstm_layer,
        "vjp(softmax_rows)": vjp(jax.nn.softmax),
        "vjp(layer_norm_rows)": vjp(layer_norm),
        "vjp(cross_entropy_mean)": vjp(cross_entropy_mean),
        "vjp(gelu_all)": vjp(gelu),
        "vjp(linear_gelu)": vjp(linear_gelu),
        "vjp(max_pool_3x3)": vjp(max_pool_3x3),
        "vjp(attention)": vjp(attention),
        "vjp(attention_causal)": vjp(
            lambda q, k, v: attention(q, k, v, True)),
        "network_gradients": network_gradients,
        "jvp(network_gradients)": jvp(network_gradients, 3),
        "vjp(lstm_layer)": vjp(lstm_layer),
        "convolution_transposed": convolution_transposed,
        "linear_of_heads": linear_of_heads,
        "layer_norm_of_one": layer_norm,
        "selective_scan": selective_scan,
        "gelu_f16": lambda x: jax.nn.gelu(x, approximate=False),
        "softmax_f16": jax.nn.softmax,
        "layer_norm_f16": layer_norm,
        "lerp_f16": lambda a, b, weight: a + weight * (b - a),
        "matmul_f16": jnp.matmul,
        "remainder_all": jnp.remainder,
        "scatter_elements": lambda x, at, v: x.at[
            jnp.arange(x.shape[0])[:, None], at].add(v),
        "adam_step": adam_step,
        "rotary": rotary,
        "vjp(gated_rows)": vjp(gated_rows),
        "group_norm_32": group_norm_32,
        "vjp(group_norm_32)": vjp(group_norm_32),
        "norm_rows": lambda x: jnp.linalg.norm(x, axis=1),
        "sin_all": jnp.sin,
        "sin_f64": jnp.sin,
        "atan2_f64": jnp.arctan2,
        "mean_pool_2x2": mean_pool(2),
        "vjp(mean_pool_8x8)": vjp(mean_pool(8)),
        "chain": chain,
        "multiply_add": lambda x, y: x * y + x,
    }
    compiles = True

    def __init__(self, threads, compiled):
        # XLA sizes its pool by the cores that the process may run on.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        self.version = f"JAX {jax.__version__}"
        jax.jit(lambda x: x + 1)(jnp.zeros(64)).block_until_ready()

    @staticmethod
    def array(data, dtype, shape):
        dtype = {
            "f16": np.float16,
            "f32": np.float32,
            "i64": np.int32
        }[dtype]
        # JAX counts in 32 bits unless told otherwise; so do its users.
        source = np.frombuffer(data, np.int64 if dtype == np.int32 else dtype)
        return jnp.asarray(source.astype(dtype).reshape(shape))

    @staticmethod
    def bytes(output):
        return np.asarray(output).tobytes()

    @staticmethod
    def compile(function, arrays):
        compiled = jax.jit(function)
        jax.block_until_ready(compiled(*arrays))
        return lambda: jax.block_until_ready(compiled(*arrays))
