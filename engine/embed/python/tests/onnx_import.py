"""Models as rules: that they run as onnxruntime runs them, and differentiate,
batch, compile and print; and what is said of models that cannot be imported.

    python -m unittest onnx_import
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from onnx_testing import (HAVE_ONNX, HAVE_RUNTIME, WHY_ONNX, WHY_RUNTIME,
                          assert_close, model_of, runtime)

if HAVE_ONNX:
    import onnx

    import cleave
    from cleave.onnx import import_onnx
    from cleave.onnx.safetensors_file import read

_RANDOM = np.random.default_rng(7)


def _floats(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


_LAYER = """
layer (float[n, 3] x) => (float[n, 2] y) {
  product = MatMul(x, kernel)
  sum = Add(product, bias)
  y = Tanh(sum)
}
"""


def _layer():
    return model_of(_LAYER, kernel=_floats(3, 2), bias=_floats(2))


# Each with the inputs to run it on.
_MODELS = {
    "shape arithmetic": ("""
m (float[n, 4, 6] x) => (float[n, k] y) {
  s = Shape(x)
  zero = Constant<value = int64[1] {0}>()
  n = Gather(s, zero)
  rest = Constant<value = int64[1] {-1}>()
  to = Concat<axis = 0>(n, rest)
  y = Reshape(x, to)
}""", [_floats(3, 4, 6)]),
    "slices": ("""
m (float[n, 8] x) => (float[a, b] y, float[c, d] z) {
  one = Constant<value = int64[1] {1}>()
  low = Constant<value = int64[1] {-3}>()
  far = Constant<value = int64[1] {9223372036854775807}>()
  back = Constant<value = int64[1] {-2}>()
  start = Constant<value = int64[1] {-1}>()
  end = Constant<value = int64[1] {-9223372036854775807}>()
  y = Slice(x, low, far, one)
  z = Slice(x, start, end, one, back)
}""", [_floats(3, 8)]),
    "split and transpose": ("""
m (float[2, 7] x) => (float[3, 2] y, float[2, 3] z, float[2, 1] w) {
  a, z, w = Split<axis = 1, num_outputs = 3>(x)
  y = Transpose(a)
}""", [_floats(2, 7)]),
    "if": ("""
m (float[n] x, bool c) => (float[n] y) {
  y = If(c)<
    then_branch = t () => (float[n] a) { a = Neg(x) },
    else_branch = e () => (float[n] b) { b = Exp(x) }>
}""", [_floats(4), np.array(False)]),
    "loop of known length": ("""
m (float[n] x) => (float[n] y, float[3, n] all) {
  three = Constant<value = int64 {3}>()
  y, all = Loop(three, , x)<body = b (int64 i, bool keep, float[n] h)
      => (bool again, float[n] next, float[n] row) {
    again = Identity(keep)
    f = Cast<to = 1>(i)
    next = Add(h, f)
    row = Mul(next, h)
  }>
}""", [_floats(4)]),
    "loop until": ("""
m (float[n] x) => (float[n] y) {
  far = Constant<value = int64 {100}>()
  yes = Constant<value = bool {1}>()
  y = Loop(far, yes, x)<body = b (int64 i, bool keep, float[n] h)
      => (bool again, float[n] next) {
    two = Constant<value = float {2.0}>()
    next = Div(h, two)
    size = Abs(next)
    largest = ReduceMax<keepdims = 0>(size)
    one = Constant<value = float {0.1}>()
    again = Greater(largest, one)
  }>
}""", [_floats(4)]),
    "scan": ("""
m (float[k] h, float[n, k] xs) => (float[k] y, float[n, k] ys) {
  y, ys = Scan<num_scan_inputs = 1, scan_input_directions = [1], body =
    b (float[k] s, float[k] x) => (float[k] t, float[k] u) {
      t = Add(s, x)
      u = Identity(t)
    }>(h, xs)
}""", [_floats(3), _floats(4, 3)]),
    "indices": ("""
m (float[n, 5] x, int64[k] at) => (float[k, 5] y, float[n] z, float[n, 2] w) {
  y = Gather<axis = 0>(x, at)
  last = Constant<value = int64 {-1}>()
  z = Gather<axis = 1>(x, last)
  some = Constant<value = int64[2] {1, 2}>()
  w = Gather<axis = 1>(x, some)
}""", [_floats(3, 5), np.array([2, 0, -1])]),
    "numbers": ("""
m (float[n] x) => (float[n] y, float[1, n] z, int64[n] k) {
  two = Constant<value_float = 2.0>()
  p = Pow(x, two)
  less = Constant<value = float {-0.1}>()
  y = Mul(less, p)
  wide = Constant<value = float[1, 1] {3.0}>()
  z = Add(x, wide)
  k = Cast<to = 7>(y)
}""", [_floats(4) * 9]),
}


@unittest.skipUnless(HAVE_RUNTIME, WHY_RUNTIME + " (1 test of 9 models)")
class AsOnnxruntime(unittest.TestCase):

    def test_models(self):
        for name, (text, inputs) in _MODELS.items():
            with self.subTest(name):
                model = model_of(text)
                imported = import_onnx(model)
                names = [i.name for i in model.graph.input]
                want = runtime(model)(**dict(zip(names, inputs)))
                got = imported(*inputs)
                got = got if isinstance(got, tuple) else (got,)
                for g, w in zip(got, want, strict=True):
                    assert_close(g, w, message=imported.source)


@unittest.skipUnless(HAVE_ONNX, WHY_ONNX + " (14 tests)")
class Imported(unittest.TestCase):

    def test_is_readable(self):
        imported = import_onnx(_layer(), name="layer_of_two")
        self.assertEqual(imported.source, """language 1

// layer, imported from ONNX.

fn layer_of_two(x: f32[n, 3], kernel: f32[3, 2], bias: f32[2]) -> (y: f32[n, 2])
{
  let product = onnx.MatMul(x, kernel)
  let sum_2 = product + bias
  let y = tanh(sum_2)
  (y = y)
}
""")

    def test_saves_what_loads(self):
        x = _floats(4, 3)
        with tempfile.TemporaryDirectory() as folder:
            imported = import_onnx(_layer(), folder)
            rules = cleave.load(os.path.join(folder, "model.rules"))
            tensors = read(os.path.join(folder, "model.safetensors"))
            again = rules.fn.model(x, *tensors.values())
        np.testing.assert_array_equal(again, imported(x))

    def test_takes_a_path_and_bytes(self):
        model = _layer()
        x = _floats(4, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(model, path)
            for source in (path, model.SerializeToString()):
                assert_close(import_onnx(source)(x=x), import_onnx(model)(x))

    def test_differentiates(self):
        imported = import_onnx(_layer())
        kernel, bias = imported.parameters.values()
        x = _floats(4, 3)
        slope = cleave.grad(lambda v: imported(v).sum())(x)
        y = np.tanh(x @ kernel + bias)
        assert_close(slope, (1 - y * y) @ kernel.T)

    def test_differentiates_in_parameters(self):
        imported = import_onnx(_layer())
        x = _floats(4, 3)

        def loss(kernel):
            return imported.apply({**imported.parameters, "kernel": kernel},
                                  x).sum()

        kernel, bias = imported.parameters.values()
        y = np.tanh(x @ kernel + bias)
        assert_close(cleave.grad(loss)(kernel), x.T @ (1 - y * y))

    def test_batches(self):
        imported = import_onnx(_layer())
        xs = _floats(5, 4, 3)
        assert_close(cleave.vmap(imported)(xs),
                     np.stack([imported(x) for x in xs]))

    def test_compiles_to_a_library(self):
        with tempfile.TemporaryDirectory() as folder:
            files = import_onnx(_layer()).compile_library(folder)
            self.assertTrue(any(f.endswith(".h") for f in files), files)

    def test_repeated_blocks_become_helpers(self):
        text = "m (float[n, 4] x0) => (float[n, 4] x3) {\n"
        for i in range(3):
            text += f"  a{i} = MatMul(x{i}, w{i})\n  b{i} = Sigmoid(a{i})\n"
            text += f"  c{i} = Mul(a{i}, b{i})\n  d{i} = Add(c{i}, x{i})\n"
            text += f"  x{i + 1} = Tanh(d{i})\n"
        weights = {f"w{i}": _floats(4, 4) for i in range(3)}
        imported = import_onnx(model_of(text + "}", **weights))
        self.assertEqual(imported.source.count("\ndef "), 1)
        self.assertEqual(imported.source.count("onnx.MatMul"), 1)
        x = want = _floats(2, 4)
        for w in weights.values():
            a = want @ w
            want = np.tanh(a / (1 + np.exp(-a)) + want)
        assert_close(imported(x), want)

    def test_lists_all_that_is_lacking(self):
        model = model_of("""
m (float[n] x) => (int64[1, k] y, float[n] z) {
  y = NonZero(x)
  z = Bernoulli(x)
}""")
        with self.assertRaises(cleave.UnimplementedError) as raised:
            import_onnx(model)
        text = str(raised.exception)
        self.assertIn("2 parts", text)
        self.assertIn("y: NonZero: how many results there are", text)
        self.assertIn("RandomUniformLike", text)

    def test_says_what_must_be_known(self):
        model = model_of("""
m (float[4, 3] x, int64[2] to) => (float[a, b] y) { y = Reshape(x, to) }""")
        with self.assertRaisesRegex(cleave.UnimplementedError,
                                    "the shape is computed from data"):
            import_onnx(model)
        fixed = import_onnx(model, values={"to": np.array([2, -1])})
        self.assertEqual(fixed(_floats(4, 3)).shape, (2, 6))

    def test_sizes(self):
        imported = import_onnx(_layer(), sizes={"n": 5})
        self.assertIn("x: f32[5, 3]", imported.source)

    def test_converts_old_opsets(self):
        model = onnx.parser.parse_model("""
<ir_version: 7, opset_import: ["" : 11]>
m (float[n, 4] x) => (float[n] y) {
  s = Softmax<axis = 1>(x)
  y = ReduceSum<axes = [1], keepdims = 0>(s)
}""")
        assert_close(import_onnx(model)(_floats(3, 4)),
                     np.ones(3, np.float32))

    def test_inlines_functions(self):
        model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
m (float[n] x) => (float[n] y) { y = local.twice(x) }
<domain: "local", opset_import: ["" : 20]>
twice (a) => (b) { b = Add(a, a) }""")
        x = _floats(3)
        assert_close(import_onnx(model)(x), x + x)

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(_layer(), path)
            out = os.path.join(folder, "out")
            done = subprocess.run(
                [sys.executable, "-m", "cleave.onnx", "import", path, "-o", out,
                 "--size", "n=2"], capture_output=True, text=True,
                check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(os.listdir(out)),
                             ["model.rules", "model.safetensors"])
            missing = subprocess.run(
                [sys.executable, "-m", "cleave.onnx", "import",
                 path + ".no", "-o", out],
                capture_output=True, text=True, check=False)
            self.assertEqual(missing.returncode, 2)


if __name__ == "__main__":
    unittest.main()
