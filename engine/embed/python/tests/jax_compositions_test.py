"""Runs JAX's transforms of the library's ops beside JAX's own functions.

    jax_compositions_test.py [UNITTEST OPTIONS] [Compositions.test_softmax ..]

Each op goes through 21 compositions, in float64 under jit, and some without;
the same function written in JAX is the oracle.
"""

from __future__ import annotations

import os
import sys
import unittest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.dont_write_bytecode = True

import cleave  # pylint: disable=wrong-import-position
import cleave.jax as cleave_jax  # pylint: disable=wrong-import-position
import jax  # pylint: disable=wrong-import-position
import jax.export  # pylint: disable=wrong-import-position
import jax.numpy as jnp  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position

import jax_ops  # pylint: disable=wrong-import-position

jax.config.update("jax_enable_x64", True)

# The oracle's programs are compiled in a moment, and run once.
jax.config.update("jax_disable_most_optimizations", True)

RULES = cleave.load()
COMPOSITIONS = {}
# These are run without jit, too, where each operation is a program.
EAGER = ("call", "vmap", "jvp", "vjp", "vmap_vjp", "jvp_vjp")


def composition(function):
    COMPOSITIONS[function.__name__] = function
    return function


def _like(args, seed):
    generator = np.random.default_rng(seed)
    return tuple(jnp.asarray(generator.uniform(-1, 1, np.shape(arg)))
                 for arg in args)


def _stack(args):
    """Three examples of the arrays, along another axis for each."""
    axes = tuple(index % (np.ndim(arg) + 1) for index, arg in enumerate(args))
    stacked = tuple(
        jnp.stack([jnp.asarray(arg) * scale for scale in (1.0, 0.7, -0.4)],
                  axis)
        for arg, axis in zip(args, axes))
    return stacked, axes


def _floats(outputs):
    leaves = jax.tree.leaves(outputs)
    return [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]


def _loss(f):
    """A scalar that depends on each float result, not linearly."""
    def loss(*args):
        total = 0.0
        for index, leaf in enumerate(_floats(f(*args))):
            weights = jnp.cos(jnp.arange(leaf.size) + index).reshape(
                leaf.shape)
            total += jnp.sum(weights * leaf) + 0.1 * jnp.sum(leaf * leaf)
        return total
    return loss


def _inexact(f):
    return lambda *args: _floats(f(*args))


# Each takes a function of the active arrays, and those.


@composition
def call(f, args):
    return f(*args)


@composition
def vmap(f, args):
    stacked, axes = _stack(args)
    return jax.vmap(f, in_axes=axes)(*stacked)


@composition
def vmap_of_first(f, args):
    stacked, axes = _stack(args[:1])
    return jax.vmap(lambda x: f(x, *args[1:]), in_axes=axes)(*stacked)


@composition
def jvp(f, args):
    return jax.jvp(_inexact(f), args, _like(args, 1))


@composition
def vjp(f, args):
    outputs, pull = jax.vjp(_inexact(f), *args)
    return pull(list(_like(outputs, 2)))


@composition
def vmap_vmap(f, args):
    stacked, axes = _stack(args)
    twice = tuple(jnp.stack([arg, 0.5 * arg]) for arg in stacked)
    return jax.vmap(jax.vmap(f, in_axes=axes))(*twice)


@composition
def vmap_jvp(f, args):
    stacked, axes = _stack(args)
    return jax.vmap(lambda *a: jvp(f, a), in_axes=axes)(*stacked)


@composition
def vmap_vjp(f, args):
    stacked, axes = _stack(args)
    return jax.vmap(lambda *a: vjp(f, a), in_axes=axes)(*stacked)


@composition
def jvp_vmap(f, args):
    stacked, axes = _stack(args)
    return jvp(jax.vmap(f, in_axes=axes), stacked)


@composition
def vjp_vmap(f, args):
    stacked, axes = _stack(args[:1])
    batched = jax.vmap(f, in_axes=axes + (None,) * (len(args) - 1))
    return vjp(batched, stacked + args[1:])


@composition
def jvp_jvp(f, args):
    return jvp(lambda *a: jvp(f, a), args)


@composition
def jvp_vjp(f, args):
    return jvp(lambda *a: vjp(f, a), args)


@composition
def vjp_jvp(f, args):
    return vjp(lambda *a: jvp(f, a), args)


@composition
def vjp_vjp(f, args):
    return vjp(lambda *a: vjp(f, a), args)


@composition
def jacobians(f, args):
    return jax.jacfwd(_inexact(f))(*args), jax.jacrev(_inexact(f))(*args)


@composition
def hessian(f, args):
    return jax.hessian(_loss(f))(*args)


@composition
def third_order(f, args):
    direction = _like(args, 5)

    def second(*a):
        return jax.jvp(jax.grad(_loss(f)), a, direction[:1] + tuple(
            jnp.zeros_like(x) for x in a[1:]))[1] if len(a) == 1 else jvp(
                lambda *b: jax.grad(_loss(f))(*b), a)
    return vjp(second, args)


@composition
def scan(f, args):
    def step(carry, x):
        shifted = jax.tree.map(lambda leaf: leaf + carry, (x, *args[1:]))
        value = _loss(f)(*shifted)
        return carry + 0.01 * jnp.tanh(value), value
    xs = jnp.stack([args[0], 0.5 * args[0]])
    return jax.value_and_grad(
        lambda xs: jax.lax.scan(step, jnp.asarray(0.1), xs)[0])(xs)


@composition
def checkpoint(f, args):
    return jax.grad(jax.checkpoint(_loss(f)))(*args)


@composition
def linear_transpose(f, args):
    _, push = jax.linearize(_inexact(f), *args)
    transposed = jax.linear_transpose(push, *args)
    return transposed(list(_like(push(*args), 3)))


@composition
def per_example_gradients(f, args):
    stacked, axes = _stack(args)
    return jax.jit(jax.vmap(jax.grad(_loss(f)), in_axes=axes))(*stacked)


class CompositionCase(unittest.TestCase):
    def compare(self, ours, theirs, where):
        # Ops give named tuples where JAX's functions give tuples.
        self.assertEqual(len(jax.tree.leaves(ours)),
                         len(jax.tree.leaves(theirs)), where)
        for index, (mine, other) in enumerate(zip(jax.tree.leaves(ours),
                                                  jax.tree.leaves(theirs))):
            with self.subTest(where, leaf=index):
                self.assertEqual(mine.shape, other.shape)
                self.assertEqual(mine.dtype, other.dtype)
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)


class Compositions(CompositionCase):
    """A test for each op, added below."""

    def run_case(self, case):
        active = tuple(map(jnp.asarray, case.args[:case.active]))
        rest = tuple(map(jnp.asarray, case.args[case.active:]))

        def ours(*args):
            return case.op(*args, *rest)

        def theirs(*args):
            return case.reference(*args, *rest)
        for name, compose in COMPOSITIONS.items():
            with self.subTest(composition=name):
                expected = jax.jit(lambda a: compose(theirs, a))(active)
                self.compare(
                    jax.jit(lambda a: compose(ours, a))(active), expected,
                    f"jit {name}")
                if name in EAGER:
                    self.compare(compose(ours, active), expected, name)


class Integers(CompositionCase):
    def test_integer_ops(self):
        for case in jax_ops.make_integer_cases(cleave_jax.wrap, RULES):
            with self.subTest(case.name):
                args = tuple(map(jnp.asarray, case.args))
                for compose in (call, vmap_integers):
                    expected = compose(case.reference, args)
                    self.compare(compose(case.op, args), expected, "eager")
                    self.compare(jax.jit(lambda *a: compose(case.op, a))(
                        *args), expected, "jit")
                zeros = tuple(np.zeros(np.shape(arg), jax.dtypes.float0)
                              for arg in args)
                _, tangent = jax.jvp(case.op, args, zeros)
                self.assertEqual(tangent.dtype, jax.dtypes.float0)


def vmap_integers(f, args):
    stacked = tuple(jnp.stack([arg, arg[..., ::-1]], axis=1 % arg.ndim)
                    for arg in args)
    axes = tuple(1 % arg.ndim for arg in args)
    return jax.vmap(f, in_axes=axes)(*stacked)


class Exports(CompositionCase):
    """Programs with a symbolic size, saved, loaded, and run at two sizes."""

    def run_export(self, case):
        args = tuple(map(jnp.asarray, case.args))
        rows = args[0].shape[0]

        def gradient(f):
            def run(x):
                return f(x, *args[1:]), jax.grad(_loss(f))(x, *args[1:])
            return jax.jit(run)
        size, = jax.export.symbolic_shape("rows")
        exported = jax.export.export(
            gradient(case.op), disabled_checks=cleave_jax.EXPORT_CHECKS)(
                jax.ShapeDtypeStruct((size, *args[0].shape[1:]),
                                     args[0].dtype))
        loaded = jax.export.deserialize(exported.serialize())
        for scale in (1, 2):
            x = jnp.concatenate([args[0]] * scale) * (1 + scale)
            self.assertEqual(x.shape[0], rows * scale)
            self.compare(loaded.call(x), gradient(case.reference)(x),
                         f"{scale} times the rows")


def _add_tests():
    cases = jax_ops.make_cases(cleave_jax.wrap, RULES)
    assert len(COMPOSITIONS) == 21, sorted(COMPOSITIONS)
    for case in cases:
        def test(self, case=case):
            self.run_case(case)
        setattr(Compositions, f"test_{case.name}", test)
        if case.symbolic and len(case.args) == 1:
            def export(self, case=case):
                self.run_export(case)
            setattr(Exports, f"test_{case.name}", export)


_add_tests()

if __name__ == "__main__":
    unittest.main()
