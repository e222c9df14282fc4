"""Ops of the library as functions of one point, each with PyTorch's own
function for it: what torch_*.py compare derivatives and batches of.
"""

from __future__ import annotations

import dataclasses
from typing import Callable

import torch
import torch.nn.functional as F


@dataclasses.dataclass
class Sample:
    """ours and theirs take the tensors that `point` makes; `fixed` says which
    of them have no derivative."""

    name: str
    ours: Callable
    theirs: Callable
    point: Callable
    fixed: int = 0


def _x(*shapes, positive=False):
    def make(dtype=torch.float64):
        torch.manual_seed(7)
        values = [torch.randn(s, dtype=dtype) for s in shapes]
        return tuple(v.abs() + 0.5 if positive else v for v in values)
    return make


def _table(dtype=torch.float64):
    torch.manual_seed(7)
    return torch.randn(6, 4, dtype=dtype), torch.tensor([[1, 5, 0], [2, 2, 3]])


def _rms(x, w):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def _layer_norm(x, w, b):
    # PyTorch's own has a wrong derivative of its derivative.
    d = x - x.mean(-1, keepdim=True)
    return d / torch.sqrt((d * d).mean(-1, keepdim=True) + 1e-5) * w + b


def samples(ns) -> list[Sample]:
    """The functions, by the ops of a namespace of cleave.torch.register."""
    return [
        Sample("silu", lambda x: ns.silu(x), F.silu, _x((3, 4))),
        Sample("gelu", lambda x: ns.gelu(x), F.gelu, _x((3, 4))),
        Sample("gelu tanh", lambda x: ns.gelu(x, approximate="tanh"),
               lambda x: F.gelu(x, approximate="tanh"), _x((3, 4))),
        Sample("softplus", lambda x: ns.softplus(x, beta=2.0),
               lambda x: F.softplus(x, beta=2.0), _x((3, 4))),
        Sample("mish", lambda x: ns.mish(x), F.mish, _x((3, 4))),
        Sample("xlogy", lambda x, y: ns.xlogy(x, y), torch.xlogy,
               _x((3, 4), (3, 4), positive=True)),
        Sample("hypot", lambda x, y: ns.hypot(x, y), torch.hypot,
               _x((3, 4), (4,), positive=True)),
        Sample("softmax", lambda x: ns.softmax(x, axis=1),
               lambda x: x.softmax(1), _x((3, 4))),
        Sample("log_softmax", lambda x: ns.log_softmax(x, axis=0),
               lambda x: x.log_softmax(0), _x((3, 4))),
        Sample("logsumexp", lambda x: ns.logsumexp(x, axes=[0]),
               lambda x: x.logsumexp(0), _x((3, 4))),
        Sample("mean", lambda x: ns.mean(x, axes=[1], keepdims=True),
               lambda x: x.mean(1, keepdim=True), _x((3, 4))),
        Sample("var_mean", lambda x: ns.var_mean(x, axes=[1]),
               lambda x: torch.var_mean(x, 1), _x((3, 4))),
        Sample("vector_norm", lambda x: ns.vector_norm(x, p=3.0),
               lambda x: torch.linalg.vector_norm(x, 3.0),
               _x((3, 4), positive=True)),
        Sample("cumsum", lambda x: ns.cumsum(x, axis=1),
               lambda x: x.cumsum(1), _x((3, 4))),
        Sample("cumprod", lambda x: ns.cumprod(x, axis=1),
               lambda x: x.cumprod(1), _x((3, 4), positive=True)),
        Sample("logcumsumexp", lambda x: ns.logcumsumexp(x, axis=1),
               lambda x: x.logcumsumexp(1), _x((3, 4))),
        Sample("layer_norm", lambda x, w, b: ns.layer_norm(
                   x, w, b, N=[4])[0],
               _layer_norm,
               _x((3, 4), (4,), (4,))),
        Sample("rms_norm", lambda x, w: ns.rms_norm(x, w, N=[4])[0], _rms,
               _x((3, 4), (4,))),
        Sample("group_norm", lambda x: ns.group_norm(x, groups=2),
               lambda x: F.group_norm(x, 2), _x((2, 4, 3))),
        Sample("matmul", lambda x, y: ns.matmul(x, y), torch.matmul,
               _x((3, 4), (4, 2))),
        Sample("linear", lambda x, w, b: ns.linear(x, w, b), F.linear,
               _x((3, 4), (2, 4), (2,))),
        Sample("bilinear", lambda x, y, w: ns.bilinear(x, y, w), F.bilinear,
               _x((3, 4), (3, 2), (5, 4, 2))),
        Sample("attention", lambda q, k, v:
               ns.scaled_dot_product_attention(q, k, v),
               lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v,
               _x((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))),
        Sample("convolution", lambda x, w: ns.convolution(x, w),
               lambda x, w: F.conv1d(x, w), _x((2, 3, 5), (2, 3, 2))),
        Sample("embedding", lambda w, i: ns.embedding(w, i),
               lambda w, i: F.embedding(i, w), _table, fixed=1),
        Sample("cdist", lambda x, y: ns.cdist(x, y),
               lambda x, y: (x[:, None] - y[None]).square().sum(-1).sqrt(),
               _x((3, 4), (2, 4))),
        Sample("huber_loss", lambda x, y: ns.huber_loss(x, y, delta=0.7),
               lambda x, y: torch.where(
                   (x - y).abs() < 0.7, (x - y) ** 2 / 2,
                   0.7 * ((x - y).abs() - 0.35)).mean(), _x((3, 4), (3, 4))),
        Sample("topk", lambda x: ns.topk(x, k=2),
               lambda x: torch.topk(x, 2), _x((3, 4))),
        Sample("glu", lambda x: ns.glu(x, axis=1),
               lambda x: x[:, :2] * torch.sigmoid(x[:, 2:]), _x((3, 4))),
        Sample("cosine_similarity", lambda x, y: ns.cosine_similarity(x, y),
               F.cosine_similarity, _x((3, 4), (3, 4))),
    ]
