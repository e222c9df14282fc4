"""cleave.jax beyond JAX's transforms, which jax_compositions_test.py has."""

from __future__ import annotations

import doctest
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                           " --xla_force_host_platform_device_count=4")
sys.dont_write_bytecode = True

import cleave  # pylint: disable=wrong-import-position
import cleave.jax as cleave_jax  # pylint: disable=wrong-import-position
from cleave.jax import handler, sizes  # pylint: disable=wrong-import-position
import jax  # pylint: disable=wrong-import-position
import jax.export  # pylint: disable=wrong-import-position
import jax.ffi  # pylint: disable=wrong-import-position
import jax.numpy as jnp  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position

P = jax.sharding.PartitionSpec
# The folder of cleave_xla.c and jax.md: that of the tests' folder.
SOURCES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RULES = cleave.load("""language 1

fn scaled(x: f32[b, n], w: f32[n]) -> f32[b, n] = softmax(x * w)
fn halves(w: f32[n], x: f32[2 * n]) -> f32[n] = w * glu(x)
fn counted(x: i64[n]) -> i64[n] = cumsum(x, axis: 0)
""")
X = np.arange(12, dtype=np.float32).reshape(4, 3) / 4


class Wrapping(unittest.TestCase):
    def test_fn_of_open_sizes(self):
        scaled = cleave_jax.wrap(RULES.fn.scaled)
        w = np.array([1, 2, 3], np.float32)
        np.testing.assert_allclose(scaled(X, w), jax.nn.softmax(X * w),
                                   rtol=1e-6)
        with self.assertRaisesRegex(ValueError, "the size `n` is 3"):
            scaled(X, w[:2])
        halves = cleave_jax.wrap(RULES.fn.halves)
        self.assertEqual(halves(w, X[0:2].reshape(6)).shape, (3,))
        with self.assertRaises(ValueError):
            halves(w, X[0])

    def test_graph(self):
        graph = RULES.function("scaled").vjp([True, False])
        y, dx = cleave_jax.wrap(graph)(X, X[0], jnp.ones_like(X))
        self.assertEqual(y.shape, dx.shape)

    def test_arguments(self):
        softmax = cleave_jax.wrap(RULES.softmax)
        self.assertIn("axis", str(softmax.__signature__))
        with self.assertRaisesRegex(TypeError, "'beta'"):
            softmax(X, beta=2)
        with self.assertRaisesRegex(TypeError, "lacks"):
            softmax(axis=1)
        with self.assertRaisesRegex(TypeError, "`axis` of softmax"):
            jax.jit(lambda x, axis: softmax(x, axis=axis))(X, 1)
        with self.assertRaisesRegex(cleave.InvalidArgumentError, "axis 7"):
            softmax(X, axis=7)
        with self.assertRaisesRegex(NotImplementedError, "int4"):
            softmax(jnp.asarray([1], jnp.int4))

    def test_numbers_take_the_dtype_of_arrays(self):
        lerp = cleave_jax.wrap(RULES.lerp)
        half = lerp(X.astype(jnp.bfloat16), 1.0, 0.5)
        self.assertEqual(half.dtype, jnp.bfloat16)

    def test_results_of_64_bits(self):
        # JAX has none here, and neither has the op.
        values, indices = cleave_jax.wrap(RULES.topk)(X, k=2)
        self.assertEqual(indices.dtype, jnp.int32)
        np.testing.assert_array_equal(values, jax.lax.top_k(X, 2)[0])
        counted = cleave_jax.wrap(RULES.fn.counted)
        self.assertEqual(counted(np.arange(3)).dtype, jnp.int32)
        loss = cleave_jax.wrap(RULES.cross_entropy)
        target = jnp.array([0, 1, 2, 0])  # an op that takes i64 gets them
        expected = -jnp.mean(jax.nn.log_softmax(X)[jnp.arange(4), target])
        np.testing.assert_allclose(loss(X, target, axis=-1), expected,
                                   rtol=1e-6)
        with self.assertRaisesRegex(TypeError, "jax_enable_x64"):
            cleave_jax.wrap(RULES.dropout)(X, np.uint32(1), p=0.5)

    def test_no_derivative(self):
        def f(x):
            return cleave_jax.wrap(RULES.floor_divide)(x, 2.0).sum()
        np.testing.assert_array_equal(jax.grad(f)(X), np.zeros_like(X))

    def test_branches_of_two_rule_sets(self):
        ours = cleave_jax.wrap(RULES.var_mean)
        shipped = cleave_jax.wrap(cleave.load().var_mean)
        var, _ = jax.jit(lambda c: jax.lax.cond(c, ours, shipped, X))(True)
        np.testing.assert_allclose(var, np.var(X, ddof=1), rtol=1e-6)


class Programs(unittest.TestCase):
    def test_kernels_are_shared(self):
        mish = cleave_jax.wrap(RULES.mish)
        jax.jit(lambda x: mish(x) + 1)(X)
        count = handler.compiled_count()
        jax.jit(lambda x: mish(x) + mish(2 * x))(X)
        self.assertEqual(handler.compiled_count(), count)
        mish(X[:2])
        self.assertEqual(handler.compiled_count(), count + 1)

    def test_subnormal_numbers(self):
        # XLA's threads flush them; a kernel's accuracy counts on them.
        x = np.full(3, 1e-40, np.float32)
        relu = cleave_jax.wrap(RULES.relu)
        np.testing.assert_array_equal(jax.jit(relu)(x), x)

    def test_error_of_a_kernel(self):
        call = jax.ffi.ffi_call(handler.TARGET,
                                jax.ShapeDtypeStruct((3,), jnp.float32))
        with self.assertRaisesRegex(Exception, "NOT_FOUND.*exq"):
            jax.jit(lambda x: call(x, graph="graph (%x: f32[3]) -> (y: f32[3])"
                                   " {\n  %1: f32[3] = exq(%x)\n"
                                   "  return y = %1\n}\n"))(X[0])
        with self.assertRaisesRegex(Exception, "`graph` is missing"):
            jax.jit(call)(X[0])

    def test_exported_program_in_another_process(self):
        gelu = cleave_jax.wrap(RULES.gelu)
        try:
            exported = jax.export.export(
                jax.jit(jax.grad(lambda x: gelu(x).sum())),
                disabled_checks=cleave_jax.EXPORT_CHECKS)(X)
            data = exported.serialize()
        except ImportError as error:  # flatbuffers
            self.skipTest(str(error))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            with open(path, "wb") as file:
                file.write(data)
            printed = subprocess.run(
                [sys.executable, "-c",
                 "import sys, cleave.jax, jax.export, jax.numpy as jnp\n"
                 "with open(sys.argv[1], 'rb') as file:\n"
                 "  program = jax.export.deserialize(file.read())\n"
                 "x = jnp.arange(12, dtype=jnp.float32).reshape(4, 3) / 4\n"
                 "print(program.call(x).sum())", path],
                check=True, capture_output=True, text=True).stdout
        expected = jax.grad(lambda x: jax.nn.gelu(x, approximate=False).sum())(
            X).sum()
        self.assertAlmostEqual(float(printed), float(expected), places=4)


class Sizes(unittest.TestCase):
    def test_text(self):
        n, m = jax.export.symbolic_shape("n, m")
        for size, expected in ((n, 7), (2 * n + m * m - 1, 22),
                               (n // 2 + m % 2, 4),
                               (jax.core.max_dim(n, m) - n * m * m, -56)):
            text = sizes.size_text(size)
            self.assertEqual(sizes.evaluate(text, {"n": 7, "m": 3}), expected)
            self.assertEqual(sizes.evaluate(text, {"n": n, "m": m}), size)

    def test_bind(self):
        self.assertEqual(sizes.bind_shapes([("n", "2*n + m")], [(3, 10)]),
                         {"n": 3, "m": 4})
        self.assertEqual(sizes.bind_shapes([("2*n",), ("n",)], [(6,), (3,)]),
                         {"n": 3})
        with self.assertRaises(ValueError):
            sizes.bind_shapes([("2*n",)], [(7,)])
        with self.assertRaises(ValueError):
            sizes.bind_shapes([("n", "n")], [(2, 3)])
        n, = jax.export.symbolic_shape("n")
        self.assertEqual(sizes.bind_shapes([("2*n",)], [(2 * n,)]), {"n": n})

    def test_export_of_expressions(self):
        glu = cleave_jax.wrap(RULES.glu)
        half, = jax.export.symbolic_shape("half")
        exported = jax.export.export(
            jax.jit(lambda x: glu(jnp.concatenate([x, x]), axis=0)),
            disabled_checks=cleave_jax.EXPORT_CHECKS)(
                jax.ShapeDtypeStruct((half,), jnp.float32))
        for size in (2, 5):
            x = jnp.arange(size, dtype=jnp.float32)
            np.testing.assert_allclose(exported.call(x), x * jax.nn.sigmoid(x),
                                       rtol=1e-6)


class Devices(unittest.TestCase):
    """Four devices of one CPU."""

    def setUp(self):
        self.mesh = jax.make_mesh((4,), ("b",),
                                  axis_types=(jax.sharding.AxisType.Auto,))
        softmax = cleave_jax.wrap(RULES.softmax)
        matmul = cleave_jax.wrap(RULES.matmul)
        self.w = jnp.ones((3, 2))
        self.f = lambda x, w: matmul(softmax(x, axis=1), w)

    def test_shard_map(self):
        for check in (False, True):
            f = jax.shard_map(self.f, mesh=self.mesh, in_specs=(P("b"), P()),
                              out_specs=P("b"), check_vma=check)
            y = jax.jit(f)(X, self.w)
            self.assertEqual(y.sharding.spec, P("b"))
            np.testing.assert_allclose(y, self.f(X, self.w))
            mine, other = (
                jax.grad(lambda x, w, g=g: jnp.sum(g(x, w) ** 2), (0, 1))(
                    X, self.w) for g in (f, self.f))
            np.testing.assert_allclose(mine[0], other[0], atol=1e-6)
            np.testing.assert_allclose(mine[1], other[1], rtol=1e-6)

    def test_pmap(self):
        y = jax.pmap(lambda x: self.f(x, self.w))(X.reshape(4, 1, 3))
        np.testing.assert_allclose(y.reshape(4, 2), self.f(X, self.w))

    def test_jit_gathers(self):
        # As jax.md says: right, and on each device as a whole.
        x = jax.device_put(X, jax.sharding.NamedSharding(self.mesh, P("b")))
        program = jax.jit(self.f).lower(x, self.w).compile()
        self.assertIn("all-gather", program.as_text())
        np.testing.assert_allclose(program(x, self.w), self.f(X, self.w))


class Sources(unittest.TestCase):
    def test_declarations_of_the_handler(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        include = jax.ffi.include_dir()
        source = os.path.join(SOURCES, "cleave_xla.c")
        subprocess.run(
            [compiler, "-std=c99", "-D_POSIX_C_SOURCE=200809L",
             "-fsyntax-only", "-Wno-pedantic", "-include",
             os.path.join(include, "xla/ffi/api/c_api.h"),
             "-I", os.path.dirname(os.path.dirname(os.path.dirname(SOURCES))),
             source], check=True)

    def test_page(self):
        failures, count = doctest.testfile(
            os.path.join(SOURCES, "jax.md"), module_relative=False,
            verbose=False,
            optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        self.assertEqual(failures, 0)
        self.assertGreater(count, 10)


if __name__ == "__main__":
    unittest.main()
