"""Traced functions: operators, the array namespace and indexing, as numpy's."""

import unittest
import warnings

import numpy as np

import cleave
from cleave import namespace as xp

RANDOM = np.random.default_rng(7)


def compare(test, cases, *arrays, exact=True):
    """Runs named functions of the arrays traced and by numpy.

    All are one graph, since compiling takes most of the time.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {}
        for name, function in cases.items():
            expected[name] = function(*arrays)
    found = cleave.jit(lambda *a: {n: f(*a) for n, f in cases.items()})(*arrays)
    for name in cases:
        want, got = expected[name], found[name]
        if not isinstance(want, (tuple, list)):
            want, got = [want], [got]
        test.assertEqual(len(want), len(got), name)
        for w, g in zip(want, got):
            w = np.asarray(w)
            test.assertEqual((g.dtype, g.shape), (w.dtype, w.shape), name)
            if exact and w.dtype.kind in "biu":
                np.testing.assert_array_equal(g, w, name)
            else:
                np.testing.assert_allclose(
                    g, w, err_msg=name, atol=1e-12 if w.dtype.itemsize > 4
                    else 1e-5, rtol=1e-12 if w.dtype.itemsize == 8 and
                    w.dtype.kind == "f" else 2e-5)


class ElementwiseTest(unittest.TestCase):

    def test_functions_of_one_array(self):
        unit = RANDOM.uniform(0.1, 0.9, (3, 4))
        names = ("exp expm1 log log1p sqrt sin cos tan sinh cosh tanh cbrt asin"
                 " acos atan asinh atanh log2 log10 reciprocal square abs"
                 " negative positive sign ceil floor round rint trunc signbit"
                 " isnan isinf isfinite real imag conj logical_not").split()
        cases = {name: lambda x, name=name: getattr(xp, name)(x)
                 for name in names}
        cases["acosh"] = lambda x: xp.acosh(x + 1)
        compare(self, cases, unit)
        compare(self, cases, unit.astype(np.float32))
        special = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 0.5])
        compare(self, {n: cases[n] for n in (
            "abs negative sign ceil floor round trunc signbit isnan isinf "
            "isfinite square exp sqrt log").split()}, special)
        whole = np.array([[3, -4], [0, 7]])
        compare(self, {n: cases[n] for n in (
            "exp sin abs negative positive sign ceil floor round trunc "
            "square isnan isfinite real imag logical_not").split()}, whole)

    def test_complex_numbers(self):
        z = RANDOM.normal(size=4) + 1j * RANDOM.normal(size=4)
        compare(self, {
            "exp": lambda z: xp.exp(z), "abs": lambda z: abs(z),
            "real": lambda z: z.real, "imag": lambda z: z.imag,
            "conj": lambda z: xp.conj(z), "mul": lambda z: z * z * (1 + 2j),
            "div": lambda z: 1 / z}, z)

    def test_functions_of_two_arrays(self):
        a = np.array([[7.5, -7.5, 2.0], [0.25, -3.0, 5.0]])
        b = np.array([2.0, 2.0, -0.75])
        names = ("add subtract multiply divide floor_divide remainder atan2"
                 " copysign nextafter maximum minimum hypot logaddexp equal"
                 " not_equal less less_equal greater greater_equal logical_and"
                 " logical_or logical_xor").split()
        cases = {name: lambda x, y, name=name: getattr(xp, name)(x, y)
                 for name in names}
        cases["pow"] = lambda x, y: xp.pow(abs(x), y)
        compare(self, cases, a, b)
        compare(self, cases, a.astype(np.float32), b.astype(np.float32))
        compare(self, cases, a.astype(np.float32), b)
        i, j = np.array([[7, -7, 8], [5, 6, -9]]), np.array([2, 3, -4])
        names = ("add subtract multiply divide floor_divide remainder maximum"
                 " minimum equal less logical_and bitwise_and bitwise_or"
                 " bitwise_xor").split()
        whole = {name: lambda x, y, name=name: getattr(xp, name)(x, y)
                 for name in names}
        compare(self, whole, i, j)
        compare(self, whole, i.astype(np.int16), j.astype(np.int32))
        compare(self, {"shifts": lambda x: (x << 2, x >> 1, ~x)}, i)
        p, q = np.array([True, False, True]), np.array([True, True, False])
        compare(self, {"and": lambda p, q: p & q, "or": lambda p, q: p | q,
                       "xor": lambda p, q: p ^ q, "not": lambda p, q: ~p,
                       "add": lambda p, q: p + q, "mul": lambda p, q: p * q,
                       "max": lambda p, q: xp.maximum(p, q)}, p, q)

    def test_remainders_of_all_signs(self):
        values = np.array([-7.5, -6.0, -0.0, 0.0, 0.3, 6.0, np.inf, np.nan])
        by = np.array([[2.0], [-2.0], [0.1], [-0.1]])
        compare(self, {"mod": lambda x, y: x % y,
                       "div": lambda x, y: x // y}, values[:-2], by)

    def test_operators_with_numbers_keep_the_dtype(self):
        for dtype in (np.float32, np.float16, np.int8, np.int32, np.uint8):
            x = np.array([1, 2, 3], dtype)
            compare(self, {
                "a": lambda x: x + 1, "b": lambda x: 2 * x,
                "c": lambda x: x / 2, "d": lambda x: 7 // x, "e": lambda x: x ** 2,
                "f": lambda x: x ** 3, "g": lambda x: 1.5 * x,
                "h": lambda x: x > 1.5, "i": lambda x: 2 - x,
                "j": lambda x: x + np.float32(1), "k": lambda x: x + True,
                "l": lambda x: np.arange(3.0) + x,
                "m": lambda x: abs(x), "n": lambda x: 5 % x,
                "o": lambda x: x * np.float64(2)}, x)
        x = np.array([0.5, 2.0])
        compare(self, {"a": lambda x: x ** 0.5, "b": lambda x: x ** -1,
                       "c": lambda x: 2 ** x, "d": lambda x: x ** 2.5,
                       "e": lambda x: x ** 0}, x)

    def test_promotion_is_numpys(self):
        from cleave.promotion import promote
        from cleave.types import dtype_name
        names = "bool u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 c64 c128"
        from cleave.types import numpy_name
        for a in names.split():
            for b in names.split():
                self.assertEqual(promote([a, b]), dtype_name(np.promote_types(
                    numpy_name(a), numpy_name(b))), (a, b))
        for number in (True, 3, 2.5, 1j):
            for a in names.split():
                if a == "bool" and number is True:
                    continue
                one = np.ones(1, numpy_name(a))
                self.assertEqual(promote([a, number]),
                                 dtype_name((one * number).dtype), (a, number))

    def test_where_clip_astype(self):
        x = RANDOM.normal(size=(3, 4))
        compare(self, {
            "where": lambda x: xp.where(x > 0, x, 0),
            "where2": lambda x: xp.where(x > 0, 1, x * 2),
            "clip": lambda x: xp.clip(x, -0.5, 0.5),
            "clip2": lambda x: x.clip(min=0.1),
            "int": lambda x: x.astype(np.int32),
            "f32": lambda x: xp.astype(x, xp.float32),
            "bool": lambda x: x.astype(bool)}, x)


class ShapingTest(unittest.TestCase):

    def test_movement(self):
        x = RANDOM.normal(size=(2, 3, 4))
        compare(self, {
            "reshape": lambda x: (x.reshape(6, 4), x.reshape(-1),
                                  xp.reshape(x, (4, -1))),
            "T": lambda x: (x.T, x.mT, x.transpose(1, 0, 2),
                            xp.permute_dims(x, (2, 0, 1))),
            "axes": lambda x: (xp.moveaxis(x, 0, -1), xp.swapaxes(x, 0, 2),
                               xp.moveaxis(x, (0, 1), (2, 0))),
            "ones": lambda x: (xp.expand_dims(x, axis=1),
                               xp.squeeze(x[:, :1], axis=1), x[:1].squeeze()),
            "flip": lambda x: (xp.flip(x, axis=1), xp.flip(x)),
            "roll": lambda x: (xp.roll(x, 1, axis=1), xp.roll(x, -5, axis=2),
                               xp.roll(x, 5), xp.roll(x, (1, 2), axis=(0, 1))),
            "broadcast": lambda x: (xp.broadcast_to(x[:, :1], (5, 2, 3, 4)),),
            "concat": lambda x: (xp.concat([x, x], axis=1),
                                 xp.concat([x, x[0]], axis=None),
                                 xp.stack([x, x * 2], axis=-1)),
            "tile": lambda x: (xp.tile(x, (2, 1, 3)), xp.tile(x, (2, 1, 1, 1)),
                               xp.repeat(x, 3, axis=1), xp.repeat(x, 2)),
            "triangles": lambda x: (xp.tril(x), xp.triu(x, k=1)),
            "unstack": lambda x: xp.unstack(x, axis=1),
            "iter": lambda x: [part * 2 for part in x]}, x)

    def test_reductions(self):
        cases = {}
        for name in ("sum prod max min mean var std all any argmax"
                     " argmin").split():
            f = getattr(xp, name)
            cases[name] = lambda x, f=f: (f(x), f(x, axis=1),
                                          f(x, axis=-1, keepdims=True))
        for name in "sum max mean any".split():
            f = getattr(xp, name)
            cases[name + "s"] = lambda x, f=f: (
                f(x, axis=(0, 2)), f(x, axis=(0, 1), keepdims=True))
        cases["methods"] = lambda x: (x.sum(), x.mean(0), x.max(axis=1),
                                      x.std(ddof=1), x.cumsum(1))
        cases["counted"] = lambda x: xp.count_nonzero(x > 0, axis=1)
        cases["running"] = lambda x: (xp.cumulative_sum(x, axis=1),
                                      xp.cumulative_prod(x, axis=2))
        cases["sorted"] = lambda x: (xp.sort(x, axis=1), xp.argsort(x))
        compare(self, cases, RANDOM.normal(size=(2, 3, 4)))
        del cases["methods"]
        compare(self, cases, RANDOM.integers(-9, 9, (2, 3, 4)).astype(np.int16))
        flags = {n: cases[n] for n in "sum max min all any mean".split()}
        compare(self, flags, RANDOM.integers(0, 2, (2, 3, 4)).astype(bool))

    def test_products(self):
        a = RANDOM.normal(size=(2, 3, 4))
        b = RANDOM.normal(size=(2, 4, 5))
        compare(self, {
            "stacks": lambda a, b: a @ b, "mixed": lambda a, b: a @ b[0],
            "wide": lambda a, b: a[0] @ b,
            "vector": lambda a, b: a @ b[0, :, 0],
            "row": lambda a, b: a[0, 0] @ b[0], "dot": lambda a, b: xp.dot(
                a, b), "inner": lambda a, b: a[0, 0] @ b[0, :, 1],
            "vecdot": lambda a, b: xp.vecdot(a, a),
            "outer": lambda a, b: xp.outer(a[0], b[0]),
            "tensordot": lambda a, b: (
                xp.tensordot(a, b, axes=([2], [1])),
                xp.tensordot(a, a, axes=3))}, a, b)
        i = RANDOM.integers(-5, 5, (3, 3))
        compare(self, {"int": lambda i: i @ i}, i)

    def test_creation(self):
        x = RANDOM.normal(size=(2, 3)).astype(np.float32)
        compare(self, {
            "like": lambda x: (xp.zeros_like(x), xp.ones_like(x),
                               xp.full_like(x, 2.5)),
            "new": lambda x: (x + xp.zeros((2, 3), dtype=x.dtype),
                              x * xp.arange(3, dtype=xp.float32),
                              xp.eye(3, dtype=xp.float32) + x[:1],
                              xp.asarray([x[0], x[1] * 2])),
            "constants": lambda x: x * xp.pi + np.float32(xp.e)}, x)

    def test_nothing_traced_is_numpys(self):
        x = np.arange(3.0)
        self.assertIsInstance(xp.exp(x), np.ndarray)
        self.assertIsInstance(xp.zeros(3), np.ndarray)
        self.assertEqual(xp.float32, np.float32)
        with self.assertRaises(AttributeError):
            xp.no_such_function


class IndexingTest(unittest.TestCase):

    def test_keys(self):
        x = RANDOM.normal(size=(4, 5, 6))
        i = np.array([2, -1, 0])
        j = np.array([[1], [-4]])
        mask = np.array([True, False, True, True])
        keys = [
            0, -1, np.int64(2), (1, 2, 3), slice(1, 3), slice(None, None, -1),
            slice(3, None, -2), slice(-3, 10), slice(3, 1), slice(None, -1, 2),
            Ellipsis, None, (None, 1), (Ellipsis, 2), (1, Ellipsis, None),
            (slice(None), 2, slice(None, None, 2)), (0, None, slice(1, 3)),
            i, [1, 0], (slice(None), i), (Ellipsis, i), (i, i), (i, 1),
            (0, slice(None), i), (i, slice(None), i), (i, None, i),
            (slice(None), i, i), (j, i), (slice(None), j, i), (None, i, 2),
            (slice(None), slice(1, 4), i), mask, (mask, 1), (mask, slice(2)),
            (slice(None), np.array([True, False, True, False, True])),
            x[:, :, 0] > 0, np.array([], int), [], (i[:, None], j[:, 0], 1),
            (slice(4, 0, -3), None, Ellipsis, -2)]
        compare(self, {str(n): lambda x, key=key: x[key]
                       for n, key in enumerate(keys)}, x)

    def test_random_keys(self):
        x = np.arange(5 * 4 * 3.0).reshape(5, 4, 3)
        cases = {}
        for n in range(60):
            key = []
            for size in x.shape[:RANDOM.integers(0, 4)]:
                kind = RANDOM.integers(0, 4)
                if kind == 0:
                    key.append(int(RANDOM.integers(-size, size)))
                elif kind == 1:
                    key.append(RANDOM.integers(-size, size, 3))
                else:
                    a, b = RANDOM.integers(-size - 1, size + 2, 2)
                    step = int(RANDOM.choice([-2, -1, 1, 2, 3]))
                    key.append(slice(int(a), int(b), step))
                if RANDOM.integers(0, 5) == 0:
                    key.append(None)
            cases[f"{n} {key}"] = lambda x, key=tuple(key): x[key]
        compare(self, cases, x)

    def test_traced_places(self):
        x = RANDOM.normal(size=(4, 5))
        i = np.array([3, -4, 0], np.int32)
        compare(self, {
            "rows": lambda x, i: x[i], "columns": lambda x, i: x[:, i],
            "both": lambda x, i: x[i, i], "take": lambda x, i: xp.take(
                x, i, axis=1),
            "along": lambda x, i: xp.take_along_axis(
                x, xp.argsort(x, axis=1), axis=1)}, x, i)
        with self.assertRaises(cleave.OutOfRangeError):
            cleave.jit(lambda x, i: x[i])(x, np.array([4]))

    def test_mistakes(self):
        x = np.ones((2, 3))
        for key, error in [(2, IndexError), ((0, 0, 0), IndexError),
                           (np.array([5]), IndexError), (1.5, Exception),
                           ((Ellipsis, Ellipsis), IndexError),
                           (slice(None, None, 0), ValueError)]:
            with self.assertRaises(error, msg=str(key)):
                cleave.jit(lambda x, key=key: x[key])(x)
        with self.assertRaises(cleave.TracingError):
            cleave.jit(lambda x: x[x > 0])(x)


class TracingTest(unittest.TestCase):

    def test_control_flow_is_an_error_that_says_so(self):
        x = np.ones(3)
        for function in (lambda x: 1 if x[0] > 0 else 2, lambda x: float(x[0]),
                         lambda x: int(x[0]), lambda x: range(x[0]),
                         lambda x: np.asarray(x), lambda x: x[0] in [1],
                         lambda x: [0, 1][x.sum()], lambda x: x.tolist(),
                         lambda x: x.__setitem__(0, 1)):
            with self.assertRaisesRegex(cleave.TracingError, "traced|graph"):
                cleave.jit(function)(x)

    def test_a_tracer_that_got_out(self):
        kept = []
        cleave.make_graph(lambda x: kept.append(x) or x)("f32[3]")
        with self.assertRaises(cleave.TracingError):
            cleave.make_graph(lambda y: y + kept[0])("f32[3]")

    def test_results_are_trees_of_arrays(self):
        f = cleave.jit(lambda x: {"a": (x, [x + 1, None]), "b": 2})
        y = f(np.float32([1]))
        self.assertEqual(y["a"][1][1], None)
        self.assertEqual(int(y["b"]), 2)
        with self.assertRaises(cleave.InvalidArgumentError):
            cleave.jit(lambda x: "text")(np.ones(1))

    def test_symbolic_sizes(self):
        graph = cleave.make_graph(
            lambda x: (x.reshape(2 * x.shape[0], -1),
                       x[1:] - x[:-1], x.mean(axis=0), x[::-1], x[-1],
                       xp.zeros((x.shape[0], 2), dtype=np.float32),
                       x.T @ x / x.shape[0]))("f32[n, 4]")
        self.assertEqual(graph.inputs[0][1].shape, ("n", 4))
        for n in (3, 6):
            x = RANDOM.normal(size=(n, 4)).astype(np.float32)
            a, b, c, d, e, f, g = graph(x)
            np.testing.assert_array_equal(a, x.reshape(2 * n, -1))
            np.testing.assert_array_equal(b, x[1:] - x[:-1])
            np.testing.assert_allclose(c, x.mean(0), rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(d, x[::-1])
            np.testing.assert_array_equal(e, x[-1])
            np.testing.assert_array_equal(f, np.zeros((n, 2), np.float32))
            np.testing.assert_allclose(g, x.T @ x / n, rtol=1e-5, atol=1e-6)
        with self.assertRaises(cleave.TracingError):
            cleave.make_graph(lambda x: x if x.shape[0] > 2 else -x)("f32[n]")
        with self.assertRaises(cleave.Error):
            cleave.make_graph(lambda x: x[1:])("f32[n]")(
                np.zeros(0, np.float32))

    def test_arrays_from_outside(self):
        table = RANDOM.normal(size=(5, 3))
        self.assertEqual(len(cleave.make_graph(
            lambda i: xp.take(table, i, axis=0))("i64[n]").inputs), 1)
        x = RANDOM.normal(size=3)
        np.testing.assert_allclose(cleave.jit(lambda x: table @ x)(x),
                                   table @ x)
        with self.assertRaises(cleave.InvalidArgumentError):
            big = np.arange(1000.0)
            cleave.make_graph(lambda x: x + big)("f64[1000]")
        # Signed zeros are kept.
        y = cleave.jit(lambda x: x * np.array([0.0, -0.0]))(np.ones(2))
        np.testing.assert_array_equal(np.signbit(y), [False, True])

    def test_two_rule_sets(self):
        one = cleave.op(cleave.load(), "op once(x: T[S..]) -> T[S..]\n"
                                       "  where T: number\n  = x\n")
        both = cleave.op(one, "op twice(x: T[S..]) -> T[S..]\n"
                              "  where T: number\n  = 2 * x\n")
        other = cleave.op(cleave.load(), "op thrice(x: T[S..]) -> T[S..]\n"
                                         "  where T: number\n  = 3 * x\n")
        x = np.arange(3.0)
        y = cleave.jit(lambda x: both.twice(one.once(x + 1)) +
                       cleave.load().softmax(x, axis=0) * 0)(x)
        np.testing.assert_array_equal(y, 2 * (x + 1))
        with self.assertRaises(cleave.InvalidArgumentError):
            cleave.jit(lambda x: other.thrice(one.once(x)))(x)


if __name__ == "__main__":
    unittest.main()
