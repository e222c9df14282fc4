"""Rule sets, their ops and functions, checks, errors, and the package."""

import inspect
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import cleave
from cleave import namespace as xp

RULES = cleave.load()
SOFT_ARGMAX = """language 1

/// The index of the largest element, softened.
op soft_argmax(x: T[A.., n@axis, B..], *, axis: axis(x) = -1, beta: real = 1) -> T[A.., B..]
  where T: float
  compute acc
  error shape "an axis of extent 0 has no index" if n == 0
  spec y[a.., b..] = sum[i](i * exp(beta * x[a.., i, b..])) / sum[i](exp(beta * x[a.., i, b..]))
  accuracy T within 2 ulp + 3 cond
{
  let p = softmax(beta * x, axis: axis)
  y[a.., b..] = sum[i](i * p[a.., i, b..])
}

/// With a doubled slope.
fn pick(x: f32[n]) -> f32[] = soft_argmax(x, beta: 2)
"""


def soft_argmax(x, axis=-1, beta=1.0):
    e = np.exp(beta * (x - x.max(axis, keepdims=True)))
    shape = [1] * x.ndim
    shape[axis] = -1
    i = np.arange(x.shape[axis]).reshape(shape)
    return (i * e).sum(axis) / e.sum(axis)


class LoadTest(unittest.TestCase):

    def test_texts_files_and_folders(self):
        x = np.float32([1, 2, 3])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "soft.rules")
            path.write_text(SOFT_ARGMAX)
            for sources in [(SOFT_ARGMAX,), (path,), (str(path),), (folder,)]:
                rules = cleave.load(*sources)
                np.testing.assert_allclose(rules.soft_argmax(x),
                                           soft_argmax(x), rtol=1e-6)
            scalar = "language 1\n\nop own(x: T[n]) -> T[n]\n" \
                     "  where T: float\n  = soft_argmax(x) * x\n"
            rules = cleave.load(scalar, folder)
            np.testing.assert_allclose(rules.own(x), soft_argmax(x) * x,
                                       rtol=1e-6)
            self.assertNotIn("own", RULES.names())
        self.assertIs(cleave.load(), RULES)
        with self.assertRaises(cleave.NotFoundError):
            cleave.load("no_such_file.rules")

    def test_mistakes_have_places(self):
        with self.assertRaises(cleave.InvalidArgumentError) as caught:
            cleave.load("language 1\nop f(x: T[]) -> T[] = bta * x\n")
        self.assertIn("`bta` is not defined", str(caught.exception))
        self.assertIn("^~~", str(caught.exception))
        self.assertEqual(len(caught.exception.diagnostics), 1)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.code, 3)

    def test_an_op_by_a_text(self):
        rules = cleave.op(RULES, "op twice(x: T[S..]) -> T[S..]\n"
                                 "  where T: number\n  = 2 * x\n")
        for dtype in (np.int32, np.float64, np.complex64):
            y = rules.twice(np.ones(3, dtype))
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_array_equal(y, [2, 2, 2])


class OpsTest(unittest.TestCase):

    def setUp(self):
        self.rules = cleave.load(SOFT_ARGMAX)
        self.x = np.random.default_rng(2).normal(size=(3, 4))

    def test_calls(self):
        op = self.rules.soft_argmax
        for _ in range(2):
            np.testing.assert_allclose(op(self.x), soft_argmax(self.x))
            np.testing.assert_allclose(op(self.x, axis=0, beta=2.5),
                                       soft_argmax(self.x, 0, 2.5))
            np.testing.assert_allclose(op(x=self.x, axis=0),
                                       soft_argmax(self.x, 0))
            np.testing.assert_allclose(op(self.x[:, :2].T),
                                       soft_argmax(self.x[:, :2].T))
        self.assertIs(op, self.rules.soft_argmax)
        self.assertIs(op, self.rules["soft_argmax"])
        self.assertEqual((op.name, op.rules), ("soft_argmax", self.rules))

    def test_documentation(self):
        op = self.rules.soft_argmax
        self.assertEqual(str(inspect.signature(op)), "(x, *, axis=-1, beta=1)")
        self.assertIn("softened", op.__doc__)
        self.assertEqual(op.__name__, "soft_argmax")
        self.assertIn("soft_argmax", dir(self.rules))
        self.assertIn("soft_argmax(x", repr(op))
        self.assertEqual(self.rules.describe("pick")["kind"], "fn")

    def test_mistakes(self):
        for call, error in [
                (lambda op: op(), TypeError),
                (lambda op: op(self.x, self.x), TypeError),
                (lambda op: op(self.x, ax=1), TypeError),
                (lambda op: op(self.x, x=self.x), TypeError),
                (lambda op: op(self.x, axis=5), cleave.InvalidArgumentError),
                (lambda op: op(self.x, axis="a"), cleave.InvalidArgumentError),
                (lambda op: op(np.arange(3)), cleave.InvalidArgumentError),
                (lambda op: op(np.ones((0,))), cleave.InvalidArgumentError)]:
            with self.assertRaises(error):
                call(self.rules.soft_argmax)
        with self.assertRaisesRegex(AttributeError, "softmax"):
            self.rules.softmx
        with self.assertRaises(cleave.NotFoundError):
            self.rules["softmx"]

    def test_names_with_points_and_positional_attributes(self):
        add = RULES["aten.add.Tensor"]
        a, b = np.float32([1, 2]), np.float32([10, 20])
        np.testing.assert_array_equal(add(a, b), a + b)
        np.testing.assert_array_equal(add(a, b, alpha=2), a + 2 * b)

    def test_attributes_keep_the_sign_of_zero(self):
        copysign = RULES["aten.copysign.Scalar"]
        pad = RULES["aten.constant_pad_nd"]
        x = np.float32([1, -2])
        for zero in (0.0, -0.0, 0.0, np.float32(-0.0)):
            sign = np.copysign(1, zero)
            np.testing.assert_array_equal(copysign(x, zero), [sign, 2 * sign])
            self.assertEqual(
                np.signbit(pad(x, pad=[1, 0], value=zero)[0]), sign < 0)
            self.assertEqual(
                np.signbit(cleave.jit(lambda x: copysign(x, zero))(x)[0]),
                sign < 0)

    def test_several_results_variadic_and_static_inputs(self):
        y = RULES["onnx.TopK"](np.float32([3, 1, 2]), [2]) \
            if "TopK" in str(RULES.names("onnx")) else None
        if y is not None:
            np.testing.assert_array_equal(y[0], [3, 2])
            np.testing.assert_array_equal(y[1], [0, 2])
        joined = RULES["onnx.Concat"]([np.ones(2), np.zeros(1)], axis=0)
        np.testing.assert_array_equal(joined, [1, 1, 0])
        np.testing.assert_allclose(
            RULES["onnx.ReduceSum"](self.x, [1], keepdims=0), self.x.sum(1))
        rules = cleave.op(RULES, "op both(x: T[S..], *, more: bool = false)\n"
                                 "    -> (sum: T[], twice: T[S..] if more)\n"
                                 "  where T: float\n"
                                 "  = (sum = sum[s..](x[s..]), twice = 2 * x)\n")
        total, twice = rules.both(self.x, more=True)
        np.testing.assert_allclose(total, self.x.sum())
        np.testing.assert_array_equal(twice, 2 * self.x)
        result = rules.both(self.x)
        self.assertIsNone(result.twice)
        np.testing.assert_allclose(result.sum, self.x.sum())

    def test_primitives(self):
        np.testing.assert_allclose(RULES.lgamma(np.array([3.0])), np.log([2.0]))
        np.testing.assert_array_equal(
            RULES["concatenate"]([np.ones(1), np.zeros(2)], axis=0), [1, 0, 0])
        values, places = RULES["sort"](np.array([2.0, 1.0]), axis=0,
                                       descending=False)
        np.testing.assert_array_equal(places, [1, 0])

    def test_functions_of_the_rules(self):
        pick = self.rules.fn.pick
        for n in (2, 5):
            x = np.random.default_rng(n).normal(size=n).astype(np.float32)
            np.testing.assert_allclose(pick(x), soft_argmax(x, beta=2.0),
                                       rtol=1e-5)
            np.testing.assert_allclose(pick(x=x), pick(x))
        self.assertEqual(pick.graph.inputs[0][1].shape, ("n",))
        self.assertEqual(dir(self.rules.fn), ["pick"])
        with self.assertRaises(cleave.InvalidArgumentError):
            pick(x.astype(np.float64))
        with self.assertRaises(AttributeError):
            self.rules.fn.softmax
        g = cleave.grad(pick)(x)
        h = 1e-2
        want = [(soft_argmax(x.astype(float) + h * e, beta=2.0) -
                 soft_argmax(x.astype(float) - h * e, beta=2.0)) / (2 * h)
                for e in np.eye(5)]
        np.testing.assert_allclose(g, want, atol=1e-3)

    def test_ops_in_traced_functions(self):
        f = lambda x: self.rules.soft_argmax(x, axis=0, beta=1.5).sum()
        h = 1e-6
        dx = cleave.grad(f)(self.x)
        e = np.zeros_like(self.x)
        e[1, 2] = h
        want = (soft_argmax(self.x + e, 0, 1.5).sum() -
                soft_argmax(self.x - e, 0, 1.5).sum()) / (2 * h)
        self.assertAlmostEqual(dx[1, 2], want, places=6)
        batched = cleave.vmap(self.rules.soft_argmax)(self.x)
        np.testing.assert_allclose(batched, soft_argmax(self.x))
        self.assertIn("soft_argmax(",
                      str(cleave.make_graph(f)("f32[5, n]")))


class DefineTest(unittest.TestCase):

    def test_a_python_function_as_an_op(self):
        rules = cleave.define(
            "centered", lambda x: x - xp.mean(x, axis=-1, keepdims=True),
            ["f32[m, n]"])
        x = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
        np.testing.assert_allclose(rules.centered(x),
                                   x - x.mean(-1, keepdims=True), atol=1e-6)
        self.assertEqual(rules.coverage("centered")["vjp"]["kind"], "derived")
        more = rules.define("twice_centered",
                            lambda x: 2 * rules.centered(x), ["f32[m, n]"])
        np.testing.assert_allclose(more.twice_centered(x),
                                   2 * rules.centered(x), atol=1e-6)


class CheckTest(unittest.TestCase):

    def test_rules(self):
        rules = cleave.load(SOFT_ARGMAX)
        report = cleave.check(rules, "soft_argmax", layers=["L1", "L2"])
        self.assertTrue(report.agrees, report.text)
        self.assertEqual(list(report.ops), ["soft_argmax"])
        self.assertIn("agrees", str(report))
        wrong = cleave.load(SOFT_ARGMAX.replace("beta * x, axis", "x, axis"))
        report = cleave.check(wrong, "soft_argmax")
        self.assertFalse(report.agrees)
        with self.assertRaises(cleave.DisagreementError) as caught:
            wrong.check("soft_argmax", raise_on_disagreement=True)
        self.assertFalse(caught.exception.report.agrees)

    def test_an_oracle(self):
        rules = cleave.op(RULES, "op magnitude(x: f32[n]) -> f32[n]"
                                 " = max(x, -x)\n")
        good = cleave.check(rules, "magnitude", oracle=np.abs)
        self.assertTrue(good.agrees, good.text)
        bad = cleave.check(rules, oracle={
            "magnitude": lambda x: np.maximum(x, 0)}, ops="magnitude")
        self.assertFalse(bad.agrees)
        self.assertIn("host", bad.text)
        with self.assertRaises(cleave.InvalidArgumentError):
            cleave.check(rules, "m*", oracle=np.abs)

    def test_a_survey_of_a_graph(self):
        rules = cleave.op(RULES, """
op checked(x: f32[n]) -> f32[n]
  = softplus(x)
""")
        naive = cleave.make_graph(
            lambda x: xp.log(xp.exp(x) + 1))(
                "f32[n]")
        report = cleave.check(rules, "checked", oracle=naive, survey=True)
        found = report.ops["checked"]["layers"]["host"]["findings"]
        self.assertEqual([f["kind"] for f in found],
                         ["not finite", "inaccurate"])
        self.assertEqual(found[0]["counterexample"]["got"], "inf (inf)")
        self.assertGreater(found[1]["worst_ulp"], 1e6)
        # Wide bounds leave the overflow.
        report = cleave.check(rules, "checked", oracle=naive, survey=True,
                              ulp=1e9)
        found = report.ops["checked"]["layers"]["host"]["findings"]
        self.assertEqual([f["kind"] for f in found], ["not finite"])
        with self.assertRaisesRegex(ValueError, "host_ulp"):
            cleave.check(rules, "checked", oracle=naive, ulp=-1)

    def test_an_oracle_that_does_not_do_a_call(self):
        rules = cleave.op(RULES, """
op checked(x: f32[n]) -> f32[n]
  = 2 * x
""")

        def long_ones_alone(x):
            if x.size < 3:
                raise NotImplementedError("too short")
            return 2 * x

        report = cleave.check(rules, "checked", oracle=long_ones_alone)
        self.assertTrue(report.agrees, report)
        notes = report.ops["checked"]["layers"]["host"]["notes"]
        self.assertTrue(any("too short" in n for n in notes), notes)

    def test_equivalent(self):
        same = cleave.equivalent(lambda x: xp.maximum(x, -x), abs, "f32[n, 3]")
        self.assertTrue(same.agrees, same.text)
        other = cleave.equivalent(lambda x: x * x, lambda x: x * abs(x),
                                  "f32[n]")
        self.assertFalse(other.agrees)
        plain = cleave.equivalent(lambda x: abs(x), np.abs, "f32[n]",
                                  trace=False)
        self.assertTrue(plain.agrees, plain.text)
        with self.assertRaises(cleave.InvalidArgumentError):
            cleave.equivalent(lambda x: x, lambda x: x.sum(), "f32[n]")


class ToolsTest(unittest.TestCase):

    def test_coverage_derive_explain(self):
        self.assertEqual(cleave.coverage("softmax")["vjp"]["kind"], "derived")
        text = cleave.derive("softsign", "jvp")
        self.assertIn("language 1", text)
        cleave.load(text)
        shown = cleave.explain(lambda x: RULES.softmax(x, axis=0), "f32[n]")
        self.assertIn("normalization.rules", shown)

    def test_compile_library(self):
        with tempfile.TemporaryDirectory() as folder:
            files = cleave.compile_library(
                lambda x: xp.exp(x) * 2, "f32[n]", name="expo", folder=folder,
                levels=["sse4.1"])
            self.assertIn(os.path.join(folder, "expo.h"), files)
            for file in files:
                self.assertTrue(os.path.exists(file), file)
            header = pathlib.Path(folder, "expo.h").read_text()
            self.assertIn("int expo(int64_t n", header)

    def test_drawings_are_there_with_dot(self):
        import shutil
        graph = cleave.make_graph(lambda x: x + 1)("f32[n]")
        self.assertEqual(hasattr(graph, "_repr_svg_"),
                         shutil.which("dot") is not None)
        if shutil.which("dot"):
            self.assertIn("<svg", graph._repr_svg_())


class CallsTest(unittest.TestCase):

    def test_limits(self):
        graph = cleave.make_graph(lambda x: RULES.softmax(x, axis=0))("f32[n]")
        with cleave.limits(deadline_seconds=1e-6):
            with self.assertRaises(cleave.DeadlineExceededError):
                graph.vjp()
        graph.vjp()
        self.assertTrue(RULES.check("softsign", layers="L2").agrees)
        seen = []
        with cleave.limits(progress=lambda *what: seen.append(what)):
            RULES.check("softsign", layers="L2")
        self.assertEqual({len(entry) for entry in seen} or {3}, {3})

    def test_an_interrupt_ends_a_long_call(self):
        def interrupt():
            time.sleep(0.4)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            RULES.check()  # all ops: minutes
        self.assertLess(time.monotonic() - start, 60)
        thread.join()
        # All goes on as before.
        np.testing.assert_array_equal(
            cleave.jit(lambda x: x + 1)(np.zeros(2)), [1, 1])

    def test_other_threads_run_during_a_long_call(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(1)
                time.sleep(0.005)

        thread = threading.Thread(target=tick)
        thread.start()
        RULES.check("softmax", layers="L2,L3")
        done.set()
        thread.join()
        self.assertGreater(len(ticks), 3)


class PackageTest(unittest.TestCase):

    def run_python(self, program):
        result = subprocess.run([sys.executable, "-c", program], text=True,
                                capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_import_is_light(self):
        out = self.run_python(
            "import sys, time\nstart = time.process_time()\nimport cleave\n"
            "print(time.process_time() - start)\n"
            "print([m for m in ('numpy', 'inspect', 'torch', 'jax')"
            " if m in sys.modules])\n")
        seconds, modules = out.splitlines()
        self.assertEqual(modules, "[]")
        self.assertLess(float(seconds), 0.5)

    def test_everything_that_is_listed_is_there(self):
        for name in dir(cleave):
            if name not in ("torch", "jax", "onnx"):
                getattr(cleave, name)
        with self.assertRaises(AttributeError):
            cleave.no_such_name

    def test_stubs_name_what_the_module_has(self):
        from cleave import _native
        stub = pathlib.Path(cleave.__file__).resolve().with_name("_native.pyi")
        text = stub.read_text()
        for name in dir(_native):
            if not name.startswith("__"):
                self.assertRegex(text, rf"(def|class) {name}\b")
                kind = getattr(_native, name)
                if isinstance(kind, type):
                    for method in vars(kind):
                        if not method.startswith("__"):
                            self.assertIn(f"def {method}(", text)

    def test_fork(self):
        out = self.run_python(
            "import cleave, numpy, os\n"
            "f = cleave.jit(lambda x: x + 1)\nf(numpy.zeros(3))\n"
            "pid = os.fork()\n"
            "y = f(numpy.ones(3)), cleave.grad(lambda x: x * x)(3.0)\n"
            "if pid: assert os.waitpid(pid, 0)[1] == 0; print(float(y[1]))\n")
        self.assertEqual(out, "6.0\n")


if __name__ == "__main__":
    unittest.main()
