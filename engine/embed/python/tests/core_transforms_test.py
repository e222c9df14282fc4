"""Transforms of functions, held to finite differences, loops and each other."""

import collections
import unittest

import numpy as np

import cleave
from cleave import namespace as xp

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(3, 4))
W = RANDOM.normal(size=(4, 2))


def loss(x, w):
    return xp.sum(xp.tanh(x @ w) ** 2)


def difference(f, x, step=1e-6):
    """The derivatives of all outputs by central differences."""
    columns = []
    for place in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        columns.append((np.asarray(f(x + moved)) -
                        np.asarray(f(x - moved))) / (2 * step))
    out = columns[0].shape
    return np.stack(columns, axis=-1).reshape(out + x.shape)


class DerivativesTest(unittest.TestCase):

    def test_grad(self):
        dx, dw = cleave.grad(loss, (0, 1))(X, W)
        np.testing.assert_allclose(dx, difference(lambda x: loss(x, W), X),
                                   atol=1e-8)
        np.testing.assert_allclose(dw, difference(lambda w: loss(X, w), W),
                                   atol=1e-8)
        np.testing.assert_array_equal(cleave.grad(loss, 1)(X, W), dw)
        np.testing.assert_array_equal(cleave.grad(loss, -1)(X, W), dw)
        self.assertEqual(float(cleave.grad(lambda x: x ** 3)(2.0)), 12.0)

    def test_value_and_grad_with_aux_and_trees(self):
        Layer = collections.namedtuple("Layer", "w b")

        def f(params, x):
            h = x @ params["layer"].w + params["layer"].b
            return xp.sum(h * h) * params["scale"], {"h": h, "n": 3}

        params = {"layer": Layer(W, np.array([0.5, -1.0])),
                  "scale": np.float64(2.0)}
        (value, aux), gradient = cleave.value_and_grad(f, has_aux=True)(params,
                                                                        X)
        h = X @ W + params["layer"].b
        np.testing.assert_allclose(value, 2 * (h * h).sum())
        np.testing.assert_allclose(aux["h"], h)
        self.assertEqual(int(aux["n"]), 3)
        self.assertIsInstance(gradient["layer"], Layer)
        np.testing.assert_allclose(gradient["layer"].w, 4 * X.T @ h)
        np.testing.assert_allclose(gradient["layer"].b, 4 * h.sum(0))
        np.testing.assert_allclose(gradient["scale"], (h * h).sum())
        only, aux = cleave.grad(f, has_aux=True)(params, X)
        np.testing.assert_array_equal(only["layer"].w, gradient["layer"].w)

    def test_jvp(self):
        dx, dw = RANDOM.normal(size=X.shape), RANDOM.normal(size=W.shape)
        f = lambda x, w: (xp.exp(x @ w), x.sum(), np.arange(3))
        y, dy = cleave.jvp(f, (X, W), (dx, dw))
        e = np.exp(X @ W)
        np.testing.assert_allclose(y[0], e)
        np.testing.assert_allclose(dy[0], e * (dx @ W + X @ dw))
        np.testing.assert_allclose(dy[1], dx.sum())
        np.testing.assert_array_equal(dy[2], [0, 0, 0])

    def test_vjp(self):
        f = lambda x, w: {"a": xp.sin(x @ w), "b": (x * x).sum(axis=1)}
        y, pull = cleave.vjp(f, X, W)
        ca, cb = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=3)
        dx, dw = pull({"a": ca, "b": cb})
        slope = np.cos(X @ W) * ca
        np.testing.assert_allclose(dx, slope @ W.T + 2 * X * cb[:, None])
        np.testing.assert_allclose(dw, X.T @ slope)
        again = pull({"a": 2 * ca, "b": 2 * cb})
        np.testing.assert_allclose(again[0], 2 * dx)
        value, pull, aux = cleave.vjp(lambda x: (x * 2, x + 1), X, has_aux=True)
        np.testing.assert_allclose(pull(X)[0], 2 * X)
        np.testing.assert_allclose(aux, X + 1)
        _, pull = cleave.vjp(lambda x, i: x[i] * 2, X, np.array([0, 0]))
        dx, di = pull(np.ones((2, 4)))
        self.assertIsNone(di)
        np.testing.assert_array_equal(dx, [[4.0] * 4, [0.0] * 4, [0.0] * 4])

    def test_linearize_and_transpose(self):
        dx, dw = RANDOM.normal(size=X.shape), RANDOM.normal(size=W.shape)
        y, push = cleave.linearize(loss, X, W)
        np.testing.assert_allclose(y, loss(X, W))
        np.testing.assert_allclose(push(dx, dw),
                                   cleave.jvp(loss, (X, W), (dx, dw))[1])
        turned = cleave.linear_transpose(lambda x: x @ W * 2, X)
        ct = RANDOM.normal(size=(3, 2))
        np.testing.assert_allclose(turned(ct)[0], 2 * ct @ W.T)
        with self.assertRaises(cleave.Error):
            cleave.linear_transpose(lambda x: xp.exp(x), X)

    def test_jacobians(self):
        f = lambda x: xp.stack([x[0] * x[1], xp.sin(x[2]), x.sum() ** 2])
        x = RANDOM.normal(size=3)
        want = difference(f, x)
        for transform in (cleave.jacrev, cleave.jacfwd):
            np.testing.assert_allclose(transform(f)(x), want, atol=1e-8)
        two = cleave.jacrev(lambda a, b: {"p": a * b.sum(), "q": b},
                            argnums=(0, 1))(x, X)
        np.testing.assert_allclose(two["p"][0], np.eye(3) * X.sum())
        np.testing.assert_allclose(two["p"][1],
                                   x[:, None, None] * np.ones(X.shape))
        np.testing.assert_array_equal(two["q"][0], np.zeros((3, 4, 3)))
        self.assertEqual(two["q"][1].shape, (3, 4, 3, 4))

    def test_hessian(self):
        f = lambda x: xp.prod(x) + xp.sum(x ** 3)
        x = np.array([1.5, -2.0, 0.5])
        want = difference(lambda v: np.asarray(cleave.grad(f)(v)), x)
        np.testing.assert_allclose(cleave.hessian(f)(x), want, atol=1e-7)

    def test_nesting(self):
        f = lambda x: xp.sum(xp.sin(x) * x)
        x = RANDOM.normal(size=4)
        v = RANDOM.normal(size=4)
        # Hessian-vector products by three ways.
        forward = cleave.jvp(cleave.grad(f), (x,), (v,))[1]
        reverse = cleave.grad(lambda x: xp.vecdot(cleave.grad(f)(x), v))(x)
        full = cleave.hessian(f)(x) @ v
        exact = (2 * np.cos(x) - x * np.sin(x)) * v
        for value in (forward, reverse, full):
            np.testing.assert_allclose(value, exact)
        third = cleave.grad(cleave.grad(cleave.grad(lambda x: x ** 4)))
        self.assertEqual(float(third(2.0)), 48.0)

    def test_pull_within_a_trace(self):
        def f(x):
            y, pull = cleave.vjp(lambda z: xp.sin(z) * x, x)
            return pull(y)[0]
        x = RANDOM.normal(size=3)
        np.testing.assert_allclose(
            cleave.jit(f)(x), np.cos(x) * x * np.sin(x) * x)
        np.testing.assert_allclose(
            cleave.jacfwd(f)(x), difference(f, x), atol=1e-7)

    def test_what_is_closed_over_is_differentiated_outside(self):
        f = lambda a: cleave.grad(lambda b: a * a * b * b)(3.0)
        self.assertEqual(float(cleave.grad(f)(2.0)), 24.0)

    def test_mistakes(self):
        for call in (lambda: cleave.grad(lambda x: x)(X),
                     lambda: cleave.grad(lambda x: (x[0, 0], x))(X),
                     lambda: cleave.grad(loss, 5)(X, W),
                     lambda: cleave.grad(lambda i: i.sum() * 1.0)(
                         np.arange(3)),
                     lambda: cleave.jvp(loss, (X, W), (X,)),
                     lambda: cleave.vjp(loss, X, W)[1]((1.0, 2.0)),
                     lambda: cleave.jacrev(lambda x: x > 0)(X)):
            with self.assertRaises(cleave.InvalidArgumentError):
                call()

    def test_without_jit_each_call_traces(self):
        factor = [2.0]
        f = cleave.grad(lambda x: x * factor[0])
        self.assertEqual(float(f(1.0)), 2.0)
        factor[0] = 5.0
        self.assertEqual(float(f(1.0)), 5.0)


class VmapTest(unittest.TestCase):

    def test_in_and_out_axes(self):
        f = lambda x, w: (x @ w, x.sum())
        xs = RANDOM.normal(size=(5, 3, 4))
        y, s = cleave.vmap(f, (0, None), (1, 0))(xs, W)
        np.testing.assert_allclose(y, np.stack([x @ W for x in xs], axis=1))
        np.testing.assert_allclose(s, xs.sum((1, 2)))
        moved = np.moveaxis(xs, 0, -1)
        y, _ = cleave.vmap(f, (-1, None))(moved, W)
        np.testing.assert_allclose(y, xs @ W)

    def test_trees_and_keywords(self):
        f = lambda p, *, x: {"y": p["a"] * x + p["b"]}
        a, b, x = RANDOM.normal(size=(3, 5))
        y = cleave.vmap(f, ({"a": 0, "b": None},))({"a": a, "b": b}, x=x)
        np.testing.assert_allclose(y["y"], a[:, None] * x[:, None] + b)

    def test_per_example_gradients_and_nesting(self):
        xs = RANDOM.normal(size=(6, 3, 4))
        one = cleave.grad(loss, 1)
        got = cleave.jit(cleave.vmap(one, (0, None)))(xs, W)
        np.testing.assert_allclose(got, np.stack([one(x, W) for x in xs]))
        table = cleave.vmap(cleave.vmap(lambda a, b: a * b, (None, 0)),
                            (0, None))(np.arange(3.0), np.arange(4.0))
        np.testing.assert_array_equal(table, np.outer(np.arange(3),
                                                      np.arange(4)))
        batched = lambda w: cleave.vmap(lambda x: loss(x, w))(xs).sum()
        np.testing.assert_allclose(cleave.grad(batched)(W), got.sum(0))

    def test_mistakes(self):
        f = cleave.vmap(lambda x, y: x + y)
        for call in (lambda: f(np.ones(3), np.ones(4)),
                     lambda: cleave.vmap(lambda x: x, None)(X),
                     lambda: cleave.vmap(lambda x: x, 2)(X),
                     lambda: cleave.vmap(lambda x: x, (0, 0))(X),
                     lambda: cleave.vmap(lambda x: x, 0, 5)(X)):
            with self.assertRaises(cleave.InvalidArgumentError):
                call()
        with self.assertRaises(cleave.UnimplementedError):
            cleave.vmap(lambda x: x, 0, None)(X)


class JitTest(unittest.TestCase):

    def test_traces_once_for_each_kind(self):
        calls = []

        def f(x, y=None, *, flip=False):
            calls.append(1)
            z = x * 2 if y is None else x * y
            return -z if flip else z

        g = cleave.jit(f)
        for _ in range(3):
            np.testing.assert_array_equal(g(X), X * 2)
        self.assertEqual(len(calls), 1)
        np.testing.assert_array_equal(g(X.astype(np.float32)),
                                      X.astype(np.float32) * 2)
        g(X[:2])
        self.assertEqual(len(calls), 3)
        np.testing.assert_array_equal(g(X, X), X * X)
        np.testing.assert_array_equal(g(X, flip=True), X * -2)
        np.testing.assert_array_equal(g(X, flip=False), X * 2)
        np.testing.assert_array_equal(g(X, 3.0), X * 3)
        np.testing.assert_array_equal(g(X, 4.0), X * 4)
        self.assertEqual(g(X[0].astype(np.float32), 2).dtype, np.float32)
        count = len(calls)
        for _ in range(2):
            g(X, 3.0), g(X, flip=True), g(X, X)
        self.assertEqual(len(calls), count)
        g.clear()
        g(X)
        self.assertEqual(len(calls), count + 1)

    def test_numbers_that_are_equal_are_not_the_same(self):
        g = cleave.jit(lambda x, n: x * n)
        i = np.array([1, 2], np.int32)
        self.assertEqual(g(i, 1).dtype, np.int32)
        self.assertEqual(g(i, 1.0).dtype, np.float64)
        self.assertEqual(g(i, True).dtype, np.int32)
        h = cleave.jit(lambda x, *, by: x * by)
        zeros = [np.signbit(h(np.ones(1), by=by))[0] for by in (0.0, -0.0)]
        self.assertEqual(zeros, [False, True])

    def test_arrays_from_outside_stay(self):
        table = np.array([1.0, 2.0])
        g = cleave.jit(lambda x: x + table)
        np.testing.assert_array_equal(g(np.zeros(2)), [1, 2])
        table[:] = 9
        np.testing.assert_array_equal(g(np.zeros(2)), [1, 2])
        np.testing.assert_array_equal(g(np.zeros(2)), [1, 2])

    def test_static_arguments(self):
        f = lambda x, n: x.sum(axis=int(n))
        for options in ({"static_argnums": 1}, {"static_argnums": (-1,)}):
            g = cleave.jit(f, **options)
            np.testing.assert_allclose(g(X, np.int64(1)), X.sum(1))
            np.testing.assert_allclose(g(X, np.int64(0)), X.sum(0))
        g = cleave.jit(f, static_argnames="n")
        np.testing.assert_allclose(g(X, n=np.int64(0)), X.sum(0))
        with self.assertRaises(cleave.TracingError):
            cleave.jit(f)(X, np.int64(1))

    def test_methods_trees_and_decorators(self):
        class Model:
            def __init__(self, w):
                self.w = w

            @cleave.jit
            def apply(self, x):
                return x @ self.w

            __hash__ = object.__hash__

        np.testing.assert_allclose(Model(W).apply(X), X @ W)

        @cleave.jit(approx=True)
        def f(p):
            return {"s": p["a"] + p["b"][0]}

        np.testing.assert_allclose(f({"a": X, "b": [X]})["s"], 2 * X)
        self.assertIn("graph", str(f.graphs[0]))

    def test_many_kinds(self):
        g = cleave.jit(lambda x: x + 1, generalize=True)
        for turn in range(2):
            for n in range(40):
                self.assertEqual(float(g(np.full(n + 1, n))[n]), n + 1)

    def test_within_a_trace(self):
        g = cleave.jit(lambda x: xp.sin(x))
        np.testing.assert_allclose(cleave.grad(lambda x: g(x).sum())(X),
                                   np.cos(X))

    def test_mistakes(self):
        with self.assertRaises(cleave.InvalidArgumentError):
            cleave.jit(lambda x, y: x)(X, {1, 2})
        with self.assertRaises(cleave.Error):
            cleave.jit(lambda x, w: x @ w)(X, X)


class AotTest(unittest.TestCase):

    def test_value_and_reverse_mode(self):
        for partition in ("default", "min-cut", cleave.min_cut_partition(
                policy="nothing"), cleave.min_cut_partition(budget=0.5)):
            run = cleave.aot(loss, partition_fn=partition)
            value, backward = run(X, W)
            np.testing.assert_allclose(value, loss(X, W))
            dx, dw = backward(np.float64(2))
            want = cleave.grad(loss, (0, 1))(X, W)
            np.testing.assert_allclose(dx, 2 * want[0])
            np.testing.assert_allclose(dw, 2 * want[1])
            np.testing.assert_allclose(run.infer(X, W), loss(X, W))

    def test_compilers_and_partitions_of_ones_own(self):
        seen = []

        def compiler(name):
            def compile_(graph, types):
                seen.append((name, [str(t) for t in types]))
                self.assertEqual(types, [kind for _, kind in graph.inputs])
                return graph.compile()
            return compile_

        def partition(joint, outputs):
            seen.append(("joint", outputs))
            halves = base.traces[0]
            return halves.forward, halves.backward

        base = cleave.aot(loss)
        base(X, W)
        run = cleave.aot(loss, compiler("forward"), compiler("backward"),
                         partition, inference_compiler=compiler("infer"))
        run(X, W)[1](np.float64(1))
        run.infer(X, W)
        self.assertEqual([name for name, _ in seen],
                         ["joint", "forward", "backward", "infer"])
        wrong = cleave.aot(loss, partition_fn=lambda joint, outputs: (
            joint, joint))
        with self.assertRaises(cleave.InvalidArgumentError):
            wrong(X, W)

    def test_dynamic(self):
        run = cleave.aot(loss, dynamic=True)
        for n in (3, 5, 7):
            x = RANDOM.normal(size=(n, 4))
            value, backward = run(x, W)
            np.testing.assert_allclose(value, loss(x, W))
            np.testing.assert_allclose(backward(np.float64(1))[0],
                                       cleave.grad(loss)(x, W))
        self.assertEqual(len(run.traces), 1)
        self.assertEqual(len(run.traces[0].forward.variables), 3)
        square = RANDOM.normal(size=(4, 4))  # another pattern
        run(square, W)
        self.assertEqual(len(run.traces), 2)
        sized = cleave.aot(lambda x: x.sum() if x.shape[0] > 3 else x.max(),
                           dynamic=True)
        self.assertEqual(float(sized(np.arange(5.0))[0]), 10)
        self.assertEqual(float(sized(np.arange(3.0))[0]), 2)
        self.assertEqual(len(sized.traces), 2)

    def test_decompositions_and_parameters(self):
        rules = cleave.load()
        f = lambda w, x: xp.sum(rules.silu(x @ w))
        run = cleave.aot(f, decompositions=["silu"], num_params_buffers=1,
                         dynamic=True)
        run(W, X)
        trace = run.traces[0]
        self.assertNotIn("silu(", str(trace.forward))
        self.assertEqual(trace.forward.inputs[0][1].shape, (4, 2))
        override = cleave.aot(f, decompositions={
            "silu": "override silu {\n  jvp x = 2 * dx\n}\n"}, argnums=1)
        value, backward = override(W, X)
        dw, dx = backward(np.float64(1))
        self.assertIsNone(dw)
        np.testing.assert_allclose(dx, np.full((3, 2), 2.0) @ W.T)
        with self.assertRaises(cleave.UnimplementedError):
            cleave.aot(f, decompositions={"silu": "relu"})(W, X)

    def test_checkpoint_name(self):
        def f(x):
            h = cleave.checkpoint_name(xp.sin(x), "hidden")
            return xp.sum(xp.exp(h) * h)
        run = cleave.aot(f, partition_fn=cleave.min_cut_partition(
            names=["hidden"]))
        _, backward = run(X)
        s = np.sin(X)
        np.testing.assert_allclose(backward(np.float64(1))[0],
                                   np.exp(s) * (1 + s) * np.cos(X))
        self.assertIn('name: "hidden"', str(run.traces[0].joint))

    def test_reverse_mode_of_reverse_mode(self):
        run = cleave.aot(lambda x: xp.sum(x ** 3))
        second = cleave.grad(lambda x: run(x)[1](np.float64(1))[0].sum())
        np.testing.assert_allclose(second(X), 6 * X)


if __name__ == "__main__":
    unittest.main()
