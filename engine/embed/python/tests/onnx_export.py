"""Graphs as ONNX models: ONNX's checker takes them, onnxruntime gives what
Cleave's kernels give, and what ONNX cannot say is an error.

    python -m unittest onnx_export
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from onnx_testing import HAVE_RUNTIME, WHY_RUNTIME, assert_close, runtime

if HAVE_RUNTIME:
    import onnx

    import cleave
    from cleave.onnx import export_onnx, import_onnx, to_onnx
    from cleave.onnx.export_ops import PRIMITIVES

_SIZES = {"n": 6, "m": 5, "b": 2, "k": 3, "l": 4, "s": 7}

# Functions whose graphs have all primitives that ONNX can say.
_FUNCTIONS = {
    "pointwise": """fn f(x: f32[n, 4], y: f32[4])
    -> (a: f32[n, 4], b: f32[n, 4], c: bool[n, 4])
  = (a = sin(x) * y + tanh(x) - expm1(x) / (1 + abs(y)),
     b = select(x > y, log1p(abs(x)), rsqrt(abs(x) + 1)) + cbrt(x),
     c = x == y or isnan(x) and not isinf(y))""",
    "functions": """fn f(x: f32[n]) -> (a: f32[n], b: f32[n], c: f32[n])
{
  let u = 0.9 * tanh(x)
  let v = asin(u) + acos(u) + atan(x) + atanh(u) + asinh(x)
    + acosh(1.5 + abs(x))
  (a = v + sinh(x) + cosh(x) + tan(u) + cos(x),
   b = ceil(x) + floor(x) + round_nearest_even(x) + sign(x) + sigmoid(x),
   c = erf(x) + erfc(x) + sqrt(abs(x)) + pow(abs(x) + 1, x) + fma(x, x, x)
     + rem(x, 0.3))
}""",
    "integers": """fn f(x: i64[n], y: i64[n])
    -> (a: i64[n], b: i64[n], c: f32[n], d: i64[n], e: i64[n])
  = (a = x // (abs(y) + 1), b = (x - 3) % (abs(y) + 1),
     c = convert(x, dtype: f32),
     d = iota(n) * x, e = xor(x, y) + (x and y) - (x or not y))""",
    "softmax": "fn f(x: f32[n, m]) -> f32[n, m] = softmax(x)",
    "layer": """fn f(x: f32[b, n, k], w: f32[k, m]) -> f32[b, n, m]
  = gelu(matmul(x, w))""",
    "norm": """fn f(x: f32[b, 6], w: f32[6], c: f32[6]) -> f32[b, 6]
  = layer_norm(x, w, c, N: [6]).y""",
    "convolution": """fn f(x: f32[n, 4, 9], w: f32[6, 2, 3]) -> f32[n, 6, 5]
  = convolution(x, w, stride: 2, padding: 1, groups: 2)""",
    "pooling": """fn f(x: f32[n, 2, 8, 8]) -> f32[n, 2, 4, 4]
  = max_pool2d_with_indices(x, kernel: 2).y""",
    "windows": """fn f(x: f32[n, 9]) -> f32[n, 9]
{
  y[i, j] = sum[k < 3](x[i, j - k] ?? 0)
}""",
    "attention": """fn f(q: f32[b, 2, l, 4], k: f32[b, 2, s, 4],
    v: f32[b, 2, s, 4]) -> f32[b, 2, l, 4]
  = scaled_dot_product_attention(q, k, v)""",
    "reductions": """fn f(x: f32[n, 5])
    -> (a: i64[n], b: i64[1, 5], r: f32[n, 5], p: f32[n], t: bool[n],
        u: bool[5])
  = (a = argmax(x, axes: [1], keepdims: false), b = argmin(x, axes: [0]),
     r = reverse(x, axes: [1]), p = reduce_prod(x, axes: [1], keepdims: false),
     t = reduce_all(x < 1, axes: [1], keepdims: false),
     u = reduce_any(x < 0, axes: [0], keepdims: false))""",
    "scans": """fn f(x: f32[n, 3]) -> (a: f32[n, 3], b: f32[n, 3], c: f32[n, 3])
  = (a = cumsum(x, axis: 0), b = cumulative_max(x, axis: 0),
     c = cumulative_min(cumprod(x, axis: 1), axis: 1, reverse: true))""",
    "lstm": """fn f(xs: f32[l, b, 3], h: f32[b, 2], c: f32[b, 2],
    wx: f32[8, 3], wh: f32[8, 2]) -> (y: f32[l, b, 2], last: f32[b, 2])
{
  let r = lstm(xs, h, c, wx, wh)
  (y = r.y, last = r.h)
}""",
    "cond": """fn f(x: f32[n]) -> f32[n]
  = cond(sum(x) > 0) { x * 2 } else { -x }""",
    "while": """fn f(x: f32[]) -> f32[]
{
  let r = while(h = x) h > 1 max 100 { (h = h / 2) }
  r.h
}""",
    "gather": """fn f(x: f32[n, 5], i: i64[k])
    -> (a: f32[k, 5], b: f32[n, k], c: f32[n, 5])
{
  let a[p, q] = x[i[p], q] ?? 7.0
  let b[p, q] = x[p, i[q] - 4] ?? 0.5
  let c[p < n, q < 5] = sum[j if i[j] == q](x[p, q] * 1.0)
  (a = a, b = b, c = c)
}""",
    "scatter": """fn f(x: f32[7], u: f32[k], at: i64[k])
    -> (a: f32[7], m: f32[7])
{
  let a[p] = x[p] + sum[j if at[j] == p](u[j])
  let m[p < 7] = max(x[p], max[j if at[j] + 3 == p](u[j]))
  (a = a, m = m)
}""",
    "sort": """fn f(x: f32[n, 5]) -> (v: f32[n, 5], i: i64[n, 5])
{
  let r = sort(x, axis: 1, descending: true)
  (v = r.values, i = r.indices)
}""",
}
# These have no reverse mode.
_DISCRETE = {"integers", "while", "gather", "scatter"}
_RANDOM = np.random.default_rng(3)


def _arrays(graph):
    arrays = {}
    for name, kind in graph.inputs:
        shape = tuple(s if isinstance(s, int) else eval(s, {}, dict(_SIZES))
                      for s in kind.shape)
        if kind.dtype == "i64":
            arrays[name] = _RANDOM.integers(0, 6, shape)
        else:
            arrays[name] = _RANDOM.standard_normal(shape).astype(np.float32)
    return arrays


@unittest.skipUnless(HAVE_RUNTIME, WHY_RUNTIME + " (6 tests, 32 graphs)")
class Exported(unittest.TestCase):

    used: set[str] = set()

    def _judge(self, graph):
        arrays = _arrays(graph)
        model = to_onnx(graph)
        got = runtime(model)(**arrays)
        want = graph(*arrays.values())
        for g, w, (name, _) in zip(got, want, graph.outputs, strict=True):
            assert_close(g, w, 2e-5, 2e-6, name)
        self.used |= {n["op"] for n in graph.expand().json()["nodes"]}

    def test_functions(self):
        for name, text in _FUNCTIONS.items():
            with self.subTest(name):
                graph = cleave.load(f"language 1\n\n{text}\n").function("f")
                self._judge(graph)

    def test_derivatives(self):
        for name, text in _FUNCTIONS.items():
            if name in _DISCRETE:
                continue
            with self.subTest(name):
                graph = cleave.load(f"language 1\n\n{text}\n").function("f")
                self._judge(graph.vjp())

    def test_known_sizes(self):
        graph = cleave.load("language 1\n\n" + _FUNCTIONS["softmax"]
                            + "\n").function("f").substitute(
                                {"n": 2, "m": 3})
        model = to_onnx(graph)
        dims = model.graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([d.dim_value for d in dims], [2, 3])
        x = _RANDOM.standard_normal((2, 3)).astype(np.float32)
        assert_close(runtime(model)(x=x)[0], graph(x)[0])

    def test_every_primitive_is_mapped_or_refused(self):
        names = set(cleave.load().names("primitive"))
        self.assertEqual(names - set(PRIMITIVES) - {"input", "result"}, set())

    def test_what_onnx_cannot_say(self):
        for text, name in (
                ("fn f(x: f32[n]) -> f32[n] = lgamma(x)", "lgamma"),
                ("fn f(x: f32[n], y: f32[n]) -> f32[n] = atan2(x, y)",
                 "atan2"),
                ("fn f(x: f64[n]) -> f64[n] = erfc(x)", "erfc"),
                ("fn f(k: key) -> f32[3] = random_uniform(k, shape: [3], "
                 "dtype: f32)", "key, which ONNX lacks")):
            graph = cleave.load(f"language 1\n\n{text}\n").function("f")
            with self.assertRaisesRegex(cleave.UnimplementedError, name):
                to_onnx(graph)

    def test_there_and_back(self):
        graph = cleave.load("language 1\n\n" + _FUNCTIONS["norm"]
                            + "\n").function("f")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "norm.onnx")
            export_onnx(graph, path)
            onnx.checker.check_model(path)
            again = import_onnx(path)
        arrays = _arrays(graph)
        assert_close(again(*arrays.values()), graph(*arrays.values())[0])

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            rules = os.path.join(folder, "f.rules")
            with open(rules, "w", encoding="utf-8") as file:
                file.write("language 1\n\n"
                           "fn f(x: f32[b, n]) -> f32[b, n] = softmax(x)\n")
            path = os.path.join(folder, "f.onnx")
            done = subprocess.run(
                [sys.executable, "-m", "cleave.onnx", "export", rules, "--fn",
                 "f", "-o", path, "--size", "n=3"],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            x = np.array([[1, 2, 3]], np.float32)
            np.testing.assert_allclose(
                import_onnx(path)(x), np.exp(x) / np.exp(x).sum(), rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
