"""Ops of the library beside the same functions written in JAX.

`CASES` is what jax_compositions_test.py runs: the op and JAX's function of the
same arrays, and the arrays. Derivatives are taken in the first `active` ones.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    op: Callable[..., Any]
    reference: Callable[..., Any]
    args: tuple[Any, ...]
    active: int = 1
    # Orders of derivatives that both sides have.
    orders: int = 3
    # Whether the first array's leading axis may be symbolic in an export.
    symbolic: bool = True


def _array(*shape: int, seed: int = 0, low: float = -2.0,
           high: float = 2.0) -> np.ndarray:
    generator = np.random.default_rng(1000 * seed + sum(shape))
    return generator.uniform(low, high, shape)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    var = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    rstd = 1 / jnp.sqrt(var + 1e-5)
    return (x - mean) * rstd * w + b, mean[..., 0], rstd[..., 0]


def _rms_norm(x: Any, w: Any) -> Any:
    rstd = 1 / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
    return x * rstd * w, rstd[..., 0]


def _group_norm(x: Any, w: Any, b: Any) -> Any:
    n, c, s = x.shape
    groups = x.reshape(n, 2, c // 2, s)
    mean = jnp.mean(groups, axis=(2, 3), keepdims=True)
    var = jnp.mean(jnp.square(groups - mean), axis=(2, 3), keepdims=True)
    normal = ((groups - mean) / jnp.sqrt(var + 1e-5)).reshape(n, c, s)
    return normal * w[:, None] + b[:, None]


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("...le,...se->...ls", q, k) / np.sqrt(q.shape[-1])
    allowed = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(allowed, scores, -jnp.inf)) @ v


def _lstm_cell(x: Any, h: Any, c: Any, wx: Any, wh: Any, b: Any) -> Any:
    i, f, g, o = jnp.split(x @ wx.T + h @ wh.T + b, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _cross_entropy(x: Any, target: Any) -> Any:
    log_p = jax.nn.log_softmax(x, axis=-1)
    return -jnp.mean(jnp.take_along_axis(log_p, target[..., None], -1))


def _convolution(x: Any, w: Any, b: Any) -> Any:
    return jax.lax.conv_general_dilated(
        x, w, (2,), [(1, 1)]) + b[:, None]


def _top(x: Any) -> Any:
    values, indices = jax.lax.top_k(x, 2)
    return values, indices.astype(jnp.int64)


def _var_mean(x: Any) -> Any:
    return jnp.var(x, axis=0, ddof=1), jnp.mean(x, axis=0)


def make_cases(wrap: Callable[[Any], Callable[..., Any]],
               rules: Any) -> list[Case]:
    """All cases, of ops that `wrap` makes functions of JAX."""
    x = _array(3, 4)

    def op(name: str, **attributes: Any) -> Callable[..., Any]:
        wrapped = wrap(getattr(rules, name))
        return lambda *args: wrapped(*args, **attributes)

    def cat(a: Any, b: Any) -> Any:
        return op("cat", axis=1)([a, b])

    ids = np.array([2, 0, 1, 2])
    return [
        # Pointwise.
        Case("gelu", op("gelu", approximate="tanh"),
             lambda x: jax.nn.gelu(x, approximate=True), (x,)),
        Case("silu", op("silu"), jax.nn.silu, (x,)),
        Case("mish", op("mish"), jax.nn.mish, (x,)),
        Case("elu", op("elu", alpha=0.7), lambda x: jax.nn.elu(x, 0.7), (x,)),
        Case("softplus", op("softplus", beta=2.0),
             lambda x: jnp.logaddexp(2 * x, 0) / 2, (x,)),
        Case("hypot", op("hypot"), lambda a, b: jnp.sqrt(a * a + b * b),
             (x, _array(4, seed=1)), active=2),
        Case("lerp", op("lerp"), lambda a, b, w: a + w * (b - a),
             (x, _array(4, seed=1), _array(3, 1, seed=2)), active=3),
        Case("logaddexp", op("logaddexp"), jnp.logaddexp,
             (x, _array(3, 4, seed=1)), active=2),
        Case("clamp", lambda x: op("clamp")(x, -1.0, 1.0),
             lambda x: jnp.clip(x, -1.0, 1.0), (x,)),
        # Reductions.
        Case("prod", op("prod", axes=[1]), lambda x: jnp.prod(x, axis=1),
             (x,)),
        Case("logsumexp", op("logsumexp", axes=[0]),
             lambda x: jax.nn.logsumexp(x, axis=0), (x,)),
        Case("vector_norm", op("vector_norm", axes=[1]),
             lambda x: jnp.sqrt(jnp.sum(x * x, axis=1)), (x,)),
        Case("amax", op("amax", axes=[-1]), lambda x: jnp.max(x, axis=-1),
             (x,)),
        # Softmax and norms.
        Case("softmax", op("softmax", axis=0),
             lambda x: jax.nn.softmax(x, axis=0), (x,)),
        Case("log_softmax", op("log_softmax", axis=-1),
             lambda x: jax.nn.log_softmax(x, axis=-1), (x,)),
        Case("layer_norm", op("layer_norm", N=[4]), _layer_norm,
             (x, _array(4, seed=1), _array(4, seed=2)), active=3),
        Case("rms_norm", op("rms_norm", N=[4]), _rms_norm,
             (x, _array(4, seed=1)), active=2),
        Case("group_norm", op("group_norm", groups=2), _group_norm,
             (_array(2, 4, 3), _array(4, seed=1), _array(4, seed=2)),
             active=3),
        # Contractions.
        Case("matmul", op("matmul"), jnp.matmul, (x, _array(4, 2)), active=2),
        Case("convolution", op("convolution", stride=[2], padding=[1]),
             _convolution, (_array(2, 3, 6), _array(4, 3, 3), _array(4)),
             active=3),
        Case("attention", op("scaled_dot_product_attention", is_causal=True),
             _attention, (_array(2, 3, 4), _array(2, 3, 4, seed=1),
                          _array(2, 3, 4, seed=2)), active=3, symbolic=False),
        Case("lstm_cell", op("lstm_cell"), _lstm_cell,
             (_array(2, 3), _array(2, 2, seed=1), _array(2, 2, seed=2),
              _array(8, 3), _array(8, 2), _array(8)), active=6,
             symbolic=False),
        # Scans.
        Case("cumsum", op("cumsum", axis=1), lambda x: jnp.cumsum(x, axis=1),
             (x,)),
        Case("cumprod", op("cumprod", axis=1),
             lambda x: jnp.cumprod(x, axis=1), (x,)),
        Case("logcumsumexp", op("logcumsumexp", axis=0),
             lambda x: jax.lax.cumlogsumexp(x, axis=0), (x,)),
        # Several results, of which some are integers.
        Case("var_mean", op("var_mean", axes=[0]), _var_mean, (x,)),
        Case("topk", op("topk", k=2), _top, (x,)),
        # Indices and movement.
        Case("cross_entropy", op("cross_entropy", axis=-1), _cross_entropy,
             (x, np.array([1, 3, 0])), symbolic=False),
        Case("embedding", op("embedding"), lambda w, i: w[i], (x, ids)),
        Case("cat", cat, lambda a, b: jnp.concatenate([a, b], 1),
             (x, _array(3, 2, seed=1)), active=2, symbolic=False),
        Case("pad", op("pad", before=[1, 0], after=[0, 2], mode="reflect"),
             lambda x: jnp.pad(x, ((1, 0), (0, 2)), mode="reflect"), (x,)),
        Case("tril", op("tril", k=-1), lambda x: jnp.tril(x, -1), (x,)),
    ]


def make_integer_cases(wrap: Callable[[Any], Callable[..., Any]],
                       rules: Any) -> list[Case]:
    """Cases without derivatives."""
    a = np.array([[7, -7, 8, -9], [5, 0, -1, 3]])
    b = np.array([3, -3, 5, 2])
    floor_divide = wrap(rules.floor_divide)
    remainder = wrap(rules.remainder)
    flip = wrap(rules.flip)
    return [
        Case("floor_divide", floor_divide, jnp.floor_divide, (a, b), active=0),
        Case("remainder", remainder, jnp.remainder, (a, b), active=0),
        Case("flip", lambda x: flip(x, axes=[1]),
             lambda x: jnp.flip(x, axis=1), (a,), active=0),
    ]
