"""NumPy, written as one does who cares for speed: in place, where it can be."""

import functools

import numpy as np


def softmax(x, out):
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def log_softmax(x, out, scratch):
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=scratch)
    out -= np.log(scratch.sum(axis=-1, keepdims=True))
    return out


def layer_norm(x, w, bias, out, scratch):
    np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
    np.multiply(out, out, out=scratch)
    out /= np.sqrt(scratch.mean(axis=-1, keepdims=True) + np.float32(1e-5))
    out *= w
    out += bias
    return out


def rms_norm(x, w, out):
    np.multiply(x, x, out=out)
    scale = np.sqrt(out.mean(axis=-1, keepdims=True) + np.float32(1e-5))
    np.divide(x, scale, out=out)
    out *= w
    return out


def mish(x, out):
    np.exp(x, out=out)
    np.log1p(out, out=out)
    np.tanh(out, out=out)
    out *= x
    return out


def cross_entropy(x, target, out, scratch):
    rows = log_softmax(x, out, scratch)[np.arange(len(target)), target]
    return -rows


def softmax_jvp(x, dx, out, tangent):
    y = softmax(x, out)
    np.multiply(y, dx, out=tangent)
    np.subtract(dx, tangent.sum(axis=-1, keepdims=True), out=tangent)
    tangent *= y
    return y, tangent


def log_softmax_backward(dy, y, out):
    np.exp(y, out=out)
    out *= dy.sum(axis=-1, keepdims=True)
    np.subtract(dy, out, out=out)
    return out


def chain(x, y, out, scratch):
    np.multiply(x, np.float32(1.5), out=out)
    out += np.float32(0.25)
    np.maximum(out, y, out=out)
    out *= out
    out -= x
    np.abs(y, out=scratch)
    scratch += np.float32(1)
    out /= scratch
    out += np.float32(0.5)
    return out


def multiply_add(x, y, out):
    np.multiply(x, y, out=out)
    out += x
    return out


def with_scratch(function, count):
    """The function with `count` more arguments: arrays like the first."""

    def bind(*arrays):
        scratch = [np.empty_like(arrays[0]) for _ in range(count)]
        return functools.partial(function, *arrays, *scratch)

    return bind


def plain(function):
    return lambda *arrays: functools.partial(function, *arrays)


def bind_matmul(a, b):
    out = np.empty(a.shape[:-1] + b.shape[1:], a.dtype)
    return functools.partial(np.matmul, a, b, out=out)


class Peer:
    FUNCTIONS = {
        "softmax_rows": with_scratch(softmax, 1),
        "vmap(softmax_row)": with_scratch(softmax, 1),
        "jvp(softmax_rows)": with_scratch(softmax_jvp, 2),
        "log_softmax_rows": with_scratch(log_softmax, 2),
        "log_softmax_backward": with_scratch(log_softmax_backward, 1),
        "layer_norm_rows": with_scratch(layer_norm, 2),
        "rms_norm_rows": with_scratch(rms_norm, 1),
        "mish_all": with_scratch(mish, 1),
        "cross_entropy_mean": with_scratch(
            lambda *arrays: cross_entropy(*arrays).mean(), 2),
        "cross_entropy_each": with_scratch(cross_entropy, 2),
        "matmul_2d": bind_matmul,
        "matrix_vector": bind_matmul,
        "vector_matrix": bind_matmul,
        "norm_rows": plain(lambda x: np.sqrt(np.einsum("ij,ij->i", x, x))),
        "sin_all": plain(np.sin),
        "sum_axis_0": plain(lambda x: x.sum(axis=0)),
        "sum_axis_1": plain(lambda x: x.sum(axis=1)),
        "sum_all": plain(lambda x: x.sum()),
        "var_axis_1": plain(lambda x: x.var(axis=1, ddof=1)),
        "argmax_axis_1": plain(lambda x: x.argmax(axis=1)),
        "transpose_2d": plain(lambda x: np.ascontiguousarray(x.T)),
        "concatenate_rows": plain(lambda x, y: np.concatenate([x, y], 1)),
        "cumsum_line": with_scratch(lambda x, out: np.cumsum(x, out=out), 1),
        "cumsum_rows": with_scratch(
            lambda x, out: np.cumsum(x, axis=1, out=out), 1),
        "matmul_batched": plain(np.matmul),
        "embedding_sum": plain(lambda w, ids: w[ids].sum(axis=1)),
        "sort_rows": plain(lambda x: np.sort(x, axis=1)),
        "chain": with_scratch(chain, 2),
        "multiply_add": with_scratch(multiply_add, 1),
    }
    compiles = False

    def __init__(self, threads, compiled):
        self.version = f"NumPy {np.__version__}"

    @staticmethod
    def array(data, dtype, shape):
        dtype = {"f32": np.float32, "i64": np.int64}[dtype]
        return np.frombuffer(data, dtype).reshape(shape).copy()

    @staticmethod
    def bytes(output):
        return np.ascontiguousarray(output, np.float32).tobytes()

    @staticmethod
    def compile(bind, arrays):
        return bind(*arrays)
