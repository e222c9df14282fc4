#!/usr/bin/env python3
"""PyTorch's partitioners on the transformer of tools/examples.

    python3 tools/benchmark/torch_partition.py [--layers 12] [--repeat 3]

Prints, as a table, for functorch's aot_function with default_partition and with
min_cut_rematerialization_partition, on twelve pre-LN blocks (width 128, four
heads, MLP of 512, 8 sequences of 128, f32, on the CPU, compilers that do
nothing): the time to trace and partition, the calls in both halves, and what is
saved: tensors and bytes that are neither parameters nor outputs.

Attention is PyTorch's own op (`fused`), whose backward pass computes the scores
again, or matrix products and a softmax (`written out`). partition_benchmark has
the same function in this repository. Needs torch; written for 2.15.
"""

import argparse
import itertools
import math
import statistics
import time

import torch
from functorch.compile import (
    aot_function,
    default_partition,
    make_boxed_func,
    min_cut_rematerialization_partition,
)
from torch._decomp import core_aten_decompositions

BATCH, TIME, WIDTH, HEADS, MLP = 8, 128, 128, 4, 512

# The shapes of the weights of a block, in the order in which it takes them.
SQUARE, ROW = (WIDTH, WIDTH), (WIDTH,)
SHAPES = [ROW, ROW] + [SQUARE, ROW] * 4 + [ROW, ROW] + [
    (MLP, WIDTH), (MLP,), (WIDTH, MLP), ROW]


def heads(x, weight, bias):
    y = torch.nn.functional.linear(x, weight, bias)
    return y.view(BATCH, TIME, HEADS, WIDTH // HEADS).transpose(1, 2)


def attend(q, k, v, fused):
    if fused:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)
    scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
    return torch.softmax(scores, -1) @ v


def transformer(layers, fused):
    functional = torch.nn.functional

    def block(x, g1, b1, wq, bq, wk, bk, wv, bv, wo, bo, g2, b2, wu, bu, wd,
              bd):
        h = functional.layer_norm(x, (WIDTH,), g1, b1)
        a = attend(heads(h, wq, bq), heads(h, wk, bk), heads(h, wv, bv), fused)
        a = a.transpose(1, 2).reshape(BATCH, TIME, WIDTH)
        y = x + functional.linear(a, wo, bo)
        m = functional.layer_norm(y, (WIDTH,), g2, b2)
        m = functional.gelu(functional.linear(m, wu, bu))
        return y + functional.linear(m, wd, bd)

    def function(*arguments):
        x = arguments[-1]
        for i in range(layers):
            x = block(x, *arguments[i * len(SHAPES):(i + 1) * len(SHAPES)])
        return x

    return function


def byte_size(value):
    return value.numel() * value.element_size()


class Halves:
    """Keeps the two graphs that the compilers are given."""

    def __init__(self):
        self.forward = None
        self.backward = None

    def keep_forward(self, graph, _):
        self.forward = graph
        return make_boxed_func(graph.forward)

    def keep_backward(self, graph, _):
        self.backward = graph
        return make_boxed_func(graph.forward)


VIEWS = ("aten.view", "aten._unsafe_view", "aten.expand", "aten.permute",
         "aten.t.", "aten.transpose", "aten.unsqueeze", "aten.squeeze",
         "aten.alias", "aten.detach")


def is_view(node):
    return (node.op == "call_function"
            and str(node.target).startswith(VIEWS))


def calls(graph):
    return sum(
        node.op == "call_function" and not is_view(node)
        and "getitem" not in str(node.target) for node in graph.graph.nodes)


def base(node):
    while is_view(node):
        node = node.args[0]
    return node


def saved(graph, outputs):
    """Number and bytes of what the forward graph holds for the backward graph:
    views are what they are views of, parameters and outputs are held anyway."""
    result = next(n for n in graph.graph.nodes if n.op == "output").args[0]
    parameters = [n for n in graph.graph.nodes if n.op == "placeholder"][:-1]
    held = {base(n).name for n in result[:outputs]}
    held |= {n.name for n in parameters}
    count, size = 0, 0
    for node in map(base, result[outputs:]):
        value = node.meta["val"]
        if node.name in held or not isinstance(value, torch.Tensor):
            continue
        held.add(node.name)
        count += 1
        size += byte_size(value)
    return count, size


def measure(layers, fused, partition, decompositions, repeat):
    function = transformer(layers, fused)
    torch.manual_seed(0)
    arguments = [torch.randn(s, requires_grad=True) * 0.1
                 for _ in range(layers) for s in SHAPES]
    arguments = [a.detach().requires_grad_() for a in arguments]
    arguments.append(torch.randn(BATCH, TIME, WIDTH, requires_grad=True))
    times = []
    for _ in range(repeat):
        halves = Halves()
        compiled = aot_function(
            function, halves.keep_forward, halves.keep_backward,
            partition_fn=partition, decompositions=decompositions)
        begin = time.perf_counter()
        compiled(*arguments).sum().backward()
        times.append(time.perf_counter() - begin)
    # The first run is in the time: it is taken off.
    begin = time.perf_counter()
    compiled(*arguments).sum().backward()
    run = time.perf_counter() - begin
    count, size = saved(halves.forward, 1)
    return {
        "first_s": times[0] - run,
        "median_s": statistics.median(times) - run,
        "forward": calls(halves.forward),
        "backward": calls(halves.backward),
        "tensors": count,
        "megabytes": size / 1e6,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {options.layers} layers")
    print("attention    partition  decompositions  first s  median s  fw calls"
          "  bw calls  saved      MB")
    partitioners = {
        "default": default_partition,
        "min-cut": min_cut_rematerialization_partition,
    }
    tables = {"none": None, "core": core_aten_decompositions()}
    for fused, name, kind in itertools.product(
            (True, False), partitioners, tables):
        row = measure(options.layers, fused, partitioners[name], tables[kind],
                      options.repeat)
        print(f"{'fused' if fused else 'written out':11}  {name:9}"
              f"  {kind:14}  {row['first_s']:7.2f}  {row['median_s']:8.2f}"
              f"  {row['forward']:8}  {row['backward']:8}"
              f"  {row['tensors']:5}  {row['megabytes']:6.2f}", flush=True)


if __name__ == "__main__":
    main()
