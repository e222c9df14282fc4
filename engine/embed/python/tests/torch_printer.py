"""Printed graphs against the engine's own kernels, primitive by primitive:
values, and derivatives by PyTorch against those by the engine.

    python -m unittest torch_printer
"""

from __future__ import annotations

import re
import unittest

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch
    from torch.func import jvp, vmap

    import cleave
    import cleave.torch
    from cleave.torch.printer import DTYPES

# name: (inputs, nodes, result). `f` stands for a float dtype. The last node is
# the result; N, M are sizes that stay open.
_UNARY = ("abs neg sign ceil floor round_nearest_even exp expm1 log log1p sqrt "
          "rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh "
          "atanh sigmoid erf erfc erfinv lgamma nograd").split()
_DOMAIN = {"log": (0.2, 2), "log1p": (-0.5, 2), "sqrt": (0.2, 2),
           "rsqrt": (0.2, 2), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
           "acosh": (1.2, 3), "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9),
           "lgamma": (0.3, 3), "pow": (0.2, 2)}
_BINARY = ("add sub mul div rem pow atan2 copysign max min nextafter").split()
_COMPARE = "eq ne lt le gt ge".split()
_INTEGER = "floor_div floor_mod rem and or xor shift_left shift_right".split()


def _graph(inputs: str, result: str, *lines: str) -> str:
    nodes = "\n".join(f"  {line}" for line in lines)
    last = lines[-1].partition(":")[0]
    return (f"graph ({inputs}) -> (y: {result}) {{\n{nodes}\n"
            f"  return y = {last}\n}}\n")


def graphs() -> dict[str, str]:
    """A graph text for each primitive, some for several of its modes."""
    texts = {}
    for op in _UNARY:
        texts[op] = _graph("%x: f64[n, m]", "f64[n, m]",
                           f"%1: f64[n, m] = {op}(%x)")
    for op in _BINARY:
        ties = ("even", "first", "second") if op in ("max", "min") else ("",)
        for tie in ties:
            attribute = f', tie: "{tie}"' if tie else ""
            texts[f"{op} {tie}".strip()] = _graph(
                "%x: f64[n, m], %z: f64[n, m]", "f64[n, m]",
                f"%1: f64[n, m] = {op}(%x, %z{attribute})")
    for op in _COMPARE:
        texts[op] = _graph("%x: f64[n, m], %z: f64[n, m]", "bool[n, m]",
                           f"%1: bool[n, m] = {op}(%x, %z)")
    for op in _INTEGER:
        texts[f"{op} of integers"] = _graph(
            "%x: i32[n, m], %z: i32[n, m]", "i32[n, m]",
            f"%1: i32[n, m] = {op}(%x, %z)")
    for op in ("isnan", "isinf"):
        texts[op] = _graph("%x: f64[n, m]", "bool[n, m]",
                           f"%1: bool[n, m] = {op}(%x)")
    x = "%x: f64[n, m]"
    texts.update({
        "not": _graph("%x: i32[n, m]", "i32[n, m]",
                      "%1: i32[n, m] = not(%x)"),
        "convert to f32": _graph(x, "f32[n, m]",
                                 "%1: f32[n, m] = convert(%x, dtype: f32)"),
        "convert to i8": _graph(
            x, "i8[n, m]", "%1: f64[n, m] = exp(%x)",
            "%2: f64[n, m] = exp(%1)", "%3: f64[n, m] = exp(%2)",
            "%4: i8[n, m] = convert(%3, dtype: i8)"),
        "convert to bool": _graph(x, "bool[n, m]",
                                  "%1: bool[n, m] = convert(%x, dtype: bool)"),
        "bitcast": _graph(x, "i64[n, m]",
                          "%1: i64[n, m] = bitcast_convert(%x, dtype: i64)"),
        "complex": _graph("%x: f64[n, m], %z: f64[n, m]", "f64[n, m]",
                          "%1: c128[n, m] = complex(%x, %z)",
                          "%2: c128[n, m] = mul(%1, %1)",
                          "%3: f64[n, m] = imag(%2)",
                          "%4: f64[n, m] = real(%2)",
                          "%5: f64[n, m] = mul(%3, %4)"),
        "ldexp": _graph("%x: f64[n, m], %i: i32[n, m]", "f64[n, m]",
                        "%1: f64[n, m] = ldexp(%x, %i)"),
        "polygamma": _graph("%x: f64[n, m]", "f64[n, m]",
                            "%1: f64[] = constant(dtype: f64, value: 1.0)",
                            "%2: f64[n, m] = broadcast_in_dim(%1, axes: [], "
                            "shape: [n, m])", "%3: f64[n, m] = abs(%x)",
                            "%4: f64[n, m] = polygamma(%2, %3)"),
        "select": _graph("%x: f64[n, m], %z: f64[n, m]", "f64[n, m]",
                         "%1: bool[n, m] = lt(%x, %z)",
                         "%2: f64[n, m] = select(%1, %z, %x)"),
        "fma": _graph("%x: f64[n, m], %z: f64[n, m]", "f64[n, m]",
                      "%1: f64[n, m] = fma(%x, %z, %x)"),
        "fma of f32": _graph("%x: f32[n, m], %z: f32[n, m]", "f32[n, m]",
                             "%1: f32[n, m] = fma(%x, %z, %x)"),
        "constants": _graph(
            x, "f64[n, m]", "%1: f64[] = constant(dtype: f64, value: 1/3)",
            "%2: f64[n, m] = broadcast_in_dim(%1, axes: [], shape: [n, m])",
            "%3: f64[n, m] = div(%2, %x)", "%4: f64[n, m] = sub(%2, %3)",
            "%5: f64[n, m] = max(%4, %2, tie: \"first\")"),
        "extent": _graph(x, "f64[n, m]", "%1: i64[] = extent(value: n + 2*m)",
                         "%2: f64[] = convert(%1, dtype: f64)",
                         "%3: f64[n, m] = broadcast_in_dim(%2, axes: [], "
                         "shape: [n, m])", "%4: f64[n, m] = mul(%x, %3)"),
        "iota": _graph(x, "i64[m]", "%1: i64[m] = iota(size: m)"),
        "broadcast": _graph(
            "%x: f64[n, 1, m]", "f64[n, 5, m, 2]",
            "%1: f64[n, 5, m, 2] = broadcast_in_dim(%x, axes: [0, 1, 2], "
            "shape: [n, 5, m, 2])"),
        "reshape": _graph(x, "f64[n*m]",
                          "%1: f64[m*n] = reshape(%x, shape: [n*m])"),
        "transpose": _graph(x, "f64[m, n]",
                            "%1: f64[m, n] = transpose(%x, axes: [1, 0])"),
        "slice": _graph("%x: f64[n, 8]", "f64[n, 3]",
                        "%1: f64[n, 3] = slice(%x, size: [n, 3], "
                        "start: [0, 1], stride: [1, 3])"),
        "reverse": _graph(x, "f64[n, m]",
                          "%1: f64[n, m] = reverse(%x, axes: [1])"),
        "pad": _graph("%x: f64[n, 4], %f: f64[]", "f64[n + 1, 9]",
                      "%1: f64[n + 1, 9] = pad_general(%x, %f, "
                      "high: [-1, 3], interior: [0, 1], low: [2, -1])"),
        "concatenate": _graph(x, "f64[n, 2*m]",
                              "%1: f64[n, 2*m] = concatenate(%x, %x, axis: 1)"),
        "windows": _graph(
            "%x: f64[n, 6, 5], %f: f64[]", "f64[n, 4, 3, 2, 2]",
            "%1: f64[n, 4, 3, 2, 2] = windows(%x, %f, counts: [4, 3], "
            "dilations: [2, 1], low: [1, 1], sizes: [2, 2], strides: [2, 2])"),
        "windows_add": _graph(
            "%x: f64[n, 4, 2]", "f64[n, 6]",
            "%1: f64[n, 6] = windows_add(%x, counts: [4], dilations: [2], "
            "low: [1], shape: [6], sizes: [2], strides: [2])"),
        "dot_general": _graph(
            "%x: f64[2, n, m], %z: f64[m, 2, 3]", "f64[2, n, 3]",
            "%1: f64[2, n, 3] = dot_general(%x, %z, batch_a: [0], "
            "batch_b: [1], contract_a: [2], contract_b: [0])"),
        "conv": _graph(
            "%x: f64[2, 4, 7, 6], %w: f64[6, 2, 3, 2]", "f64[2, 6, 4, 4]",
            "%1: f64[2, 6, 4, 4] = conv(%x, %w, batch_groups: 1, groups: 2, "
            "high: [2, -1], lhs_dilation: [1, 2], low: [1, 0], "
            "rhs_dilation: [1, 2], stride: [2, 2])"),
        "conv by groups of the batch": _graph(
            "%x: f64[4, 3, 5], %w: f64[6, 3, 2]", "f64[2, 6, 4]",
            "%1: f64[2, 6, 4] = conv(%x, %w, batch_groups: 2, groups: 1, "
            "high: [0], lhs_dilation: [1], low: [0], rhs_dilation: [1], "
            "stride: [1])"),
        "gather": _graph(
            "%x: f64[n, 4, 5], %i: i64[n, 3, 2], %f: f64[]", "f64[n, 3]",
            "%1: f64[n, 3] = gather(%x, %i, %f, axes: [1, 2], batch: 1, "
            "mode: \"fill\")"),
        "gather rows": _graph(
            "%x: f64[4, n], %i: i64[3, 1], %f: f64[]", "f64[3, n]",
            "%1: f64[3, n] = gather(%x, %i, %f, axes: [0], batch: 0, "
            "mode: \"fill\")"),
    })
    for op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        ties = ("even", "first") if op[-3:] in ("max", "min") else ("",)
        for tie in ties:
            attribute = f', tie: "{tie}"' if tie else ""
            texts[f"{op} {tie}".strip()] = _graph(
                "%x: f64[n, 3, m]", "f64[3]",
                f"%1: f64[3] = {op}(%x, axes: [0, 2]{attribute})")
    for op in ("reduce_all", "reduce_any"):
        texts[op] = _graph("%x: bool[n, 3, m]", "bool[3]",
                           f"%1: bool[3] = {op}(%x, axes: [0, 2])")
    for op in ("argmax", "argmin"):
        texts[op] = _graph("%x: f64[n, 3, m]", "i64[3]",
                           f"%1: i64[3] = {op}(%x, axes: [0, 2])")
    for reverse in ("false", "true"):
        texts[f"linear_scan reverse {reverse}"] = _graph(
            "%x: f64[n, 5], %z: f64[n, 5], %f: f64[n]", "f64[n, 5]",
            f"%1: f64[n, 5] = linear_scan(%x, %z, %f, axis: 1, "
            f"reverse: {reverse})")
        for op in ("cumulative_max", "cumulative_min"):
            texts[f"{op} reverse {reverse}"] = _graph(
                "%x: f64[n, 5]", "f64[n, 5]",
                f"%1: f64[n, 5] = {op}(%x, axis: 1, reverse: {reverse})")
        texts[f"sort descending {reverse}"] = _graph(
            x, "f64[n, m]", "%1: f64[n, m], i64[n, m] = sort(%x, axis: 1, "
            f"descending: {reverse})", "%2: f64[n, m] = result(%1, index: 0)")
    for mode in ("add", "mul", "max", "min", "set"):
        for tie in ("even", "first") if mode in ("max", "min") else ("",):
            attribute = f', tie: "{tie}"' if tie else ""
            texts[f"scatter {mode} {tie}".strip()] = _graph(
                "%x: f64[n, 4, 2], %i: i64[n, 5, 1], %u: f64[n, 5, 2]",
                "f64[n, 4, 2]",
                "%1: f64[n, 4, 2] = scatter(%x, %i, %u, axes: [1], batch: 1, "
                f"mode: \"{mode}\"{attribute})")
    return texts


def arguments(text: str, dtypes=None) -> list:
    """Tensors for the inputs of a graph text: n is 3, m is 4."""
    torch.manual_seed(len(text))
    name = re.search(r"= (\w+)\(", text).group(1)
    low, high = _DOMAIN.get(name, (-2.0, 2.0))
    result = []
    header = text[:text.index("->")]
    for what, dtype, shape in re.findall(r"%(\w+): (\w+)\[([^\]]*)\]", header):
        extents = [int(eval(s, {"n": 3, "m": 4}))
                   for s in shape.split(",") if s.strip()]
        kind = DTYPES[dtype]
        if kind == torch.bool:
            value = torch.rand(extents) < 0.5
        elif kind.is_floating_point:
            value = low + (high - low) * torch.rand(extents, dtype=kind)
            if "max" in text or "min" in text or "scan" in text:
                # Ties, and zeros.
                value = torch.round(value)
        elif what == "i":
            value = torch.randint(-1, 5, extents, dtype=kind)
        else:
            value = torch.randint(1, 9, extents, dtype=kind)
        result.append(value)
    return result


@unittest.skipUnless(HAVE_TORCH, WHY)
class Primitives(unittest.TestCase):
    """Every primitive that PyTorch can say."""

    def setUp(self):
        self.rules = cleave.load()

    def each(self):
        for name, text in graphs().items():
            yield name, self.rules.parse(text), arguments(text)

    def test_values_are_the_kernels(self):
        for name, graph, args in self.each():
            with self.subTest(primitive=name):
                got = cleave.torch.printed(graph)(*args)
                want = graph.compile()(*args)
                # PyTorch's polygamma has ten digits.
                rtol = 1e-8 if name == "polygamma" else 1e-12
                torch.testing.assert_close(got, tuple(want), rtol=rtol,
                                           atol=rtol / 10, equal_nan=True)

    def test_tangents_are_the_engines(self):
        for name, graph, args in self.each():
            active = [a.is_floating_point() for a in args]
            if not any(active) or graph.outputs[0][1].dtype != "f64":
                continue
            with self.subTest(primitive=name):
                derived, has = graph.jvp(active)
                if not any(has):
                    continue
                x = [a for a in args if a.is_floating_point()]
                t = [torch.cos(torch.arange(a.numel(), dtype=a.dtype) + 1)
                     .reshape(a.shape) for a in x]
                want = derived.compile()(*args, *t)[1]

                def run(*floats, graph=graph, args=args):
                    rest = iter(floats)
                    full = [next(rest) if a.is_floating_point() else a
                            for a in args]
                    return cleave.torch.printed(graph)(*full)[0]

                got = jvp(run, tuple(x), tuple(t))[1]
                torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-11)

    def test_batches_are_single_calls(self):
        for name, graph, args in self.each():
            with self.subTest(primitive=name):
                printed = cleave.torch.printed(graph)
                other = [a.flip(0) if a.dim() else a for a in args]
                got = vmap(printed)(*[torch.stack(p)
                                      for p in zip(args, other)])
                for k, single in enumerate((args, other)):
                    for g, w in zip(got, printed(*single)):
                        torch.testing.assert_close(g[k], w, equal_nan=True)

    def test_scans_beyond_infinities(self):
        """Factors of 0 times infinities come up only where the scan has them.
        """
        inf = float("inf")
        a = torch.tensor([[1, inf, 2, 1, 0.5], [inf, 1, 1, 1, 1],
                          [2, 2, 2, 2, 2]], dtype=torch.float64)
        b = torch.tensor([[0, 1, 1, 1, 1], [0, 1, 1, 1, 1],
                          [1, inf, 1, 1, -1]], dtype=torch.float64)
        init = torch.tensor([1, 1, 0], dtype=torch.float64)
        for name, text in graphs().items():
            if not name.startswith("linear_scan"):
                continue
            with self.subTest(name):
                graph = self.rules.parse(text)
                got, = cleave.torch.printed(graph)(a, b, init)
                want, = graph.compile()(a, b, init)
                torch.testing.assert_close(got, torch.as_tensor(want))
                self.assertFalse(torch.isnan(got).any())

    def test_sizes_that_values_decide(self):
        """nonzero's size has the name of the op that asks for it."""
        graph = self.rules.call_graph(
            "aten.index.Tensor", ["f64[n]", ["bool[n]"]], {})
        x = torch.linspace(-1, 1, 7, dtype=torch.float64)
        got, = cleave.torch.printed(graph)(x, x * x > 0.2)
        torch.testing.assert_close(got, x[x * x > 0.2])
        got, = cleave.torch.printed(graph)(x, x > 2)
        self.assertEqual(got.shape, (0,))

    def test_the_list_is_complete(self):
        """Each primitive is printed here, printed elsewhere, or refused."""
        elsewhere = {"input", "constant", "broadcast_in_dim", "pad_general",
                     "bitcast_convert", "nonzero", "random_bits",
                     "random_uniform", "random_split", "random_fold_in",
                     "scan", "cond", "while", "result"}
        used = set(re.findall(r"= (\w+)\(", "".join(graphs().values())))
        missing = set(self.rules.names("primitive")) - used - elsewhere
        self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()
