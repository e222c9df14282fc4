"""Graphs, builders, types and trees."""

import pickle
import unittest

import numpy as np

import cleave
from cleave import TensorType, trees, types

RULES = cleave.load()
TEXT = """graph (%x: f32[n, 4], %w: f32[4, m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = dot_general(%x, %w, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  %2: f32[n, m] = tanh(%1)
  return y = %2
}
"""


class TypesTest(unittest.TestCase):

    def test_texts(self):
        for text in ("f32[]", "bool[3]", "f64[n, 2*m + 1, max(n, 3)]"):
            self.assertEqual(str(TensorType.parse(text)), text)
        kind = TensorType.parse("f32[n, 4]")
        self.assertEqual(kind, cleave.ShapeDtype(("n", 4), "float32"))
        self.assertEqual(kind.shape, ("n", 4))
        for wrong in ("f32", "f99[2]", "[3]", ""):
            with self.assertRaises(cleave.InvalidArgumentError):
                TensorType.parse(wrong)

    def test_dtypes_of_frameworks(self):
        for value, name in [(np.float32, "f32"), (np.dtype("i8"), "i64"),
                            ("float16", "f16"), (np.bool_, "bool"),
                            (np.complex64, "c64"), (float, "f64")]:
            self.assertEqual(types.dtype_name(value), name)

    def test_sizes(self):
        sizes = {"n": 7, "x.k": 2}
        for text, value in [("2*n + 1", 15), ("n//2", 3), ("max(n, 9)", 9),
                            ("n % x.k", 1), ("min(n, 3)", 3)]:
            self.assertEqual(types.evaluate_size(text, sizes), value)

    def test_attributes(self):
        text = types.attribute_text(
            {"axis": 1, "beta": 1e-5, "flag": True, "mode": 'a"b', "k": [1, 2],
             "dtype": np.float32, "gone": None}, {"dtype": "dtype"})
        self.assertEqual(
            text, 'axis: 1, beta: 1e-05, flag: true, mode: "a\\"b", k: [1, 2], '
            'dtype: f32')
        from cleave.hosts import read_attributes
        self.assertEqual(
            read_attributes(text),
            {"axis": 1, "beta": 1e-5, "flag": True, "mode": 'a"b',
             "k": [1, 2], "dtype": "f32"})
        text = types.attribute_text({"value": -0.0}, {})
        self.assertEqual(text, "value: -0.0")
        self.assertEqual(str(read_attributes(text)["value"]), "-0.0")


class TreesTest(unittest.TestCase):

    def test_round_trips(self):
        import collections
        Point = collections.namedtuple("Point", "x y")
        for value in (1, (1, [2, None, {"b": 3, "a": (4,)}]), None, (),
                      {"p": Point(1, [2])}):
            leaves, tree = trees.flatten(value)
            self.assertEqual(trees.unflatten(tree, leaves), value)
            self.assertEqual(tree, trees.flatten(value)[1])
        self.assertEqual(trees.flatten({"b": 1, "a": 2})[0], [2, 1])
        self.assertEqual(trees.flatten(None)[0], [])

    def test_prefixes(self):
        tree = trees.flatten(({"a": 1, "b": 2}, 3))[1]
        self.assertEqual(trees.spread((0, None), tree, "axes"), [0, 0, None])
        self.assertEqual(trees.spread(1, tree, "axes"), [1, 1, 1])
        with self.assertRaises(cleave.InvalidArgumentError):
            trees.spread((0,), tree, "axes")


class GraphsTest(unittest.TestCase):

    def setUp(self):
        self.graph = RULES.parse(TEXT)
        random = np.random.default_rng(1)
        self.x = random.normal(size=(3, 4)).astype(np.float32)
        self.w = random.normal(size=(4, 2)).astype(np.float32)

    def test_what_it_is(self):
        g = self.graph
        self.assertEqual(str(RULES.parse(str(g))), str(g))
        self.assertEqual(g.inputs, [("x", TensorType("f32", ("n", 4))),
                                    ("w", TensorType("f32", (4, "m")))])
        self.assertEqual(g.outputs, [("y", TensorType("f32", ("n", "m")))])
        self.assertEqual(sorted(g.variables), ["m", "n"])
        self.assertEqual(g.guards, [])
        self.assertEqual(len(g.json()["nodes"]), 2)
        self.assertIn("digraph", g.dot())
        self.assertEqual(g, RULES.parse(TEXT))
        self.assertEqual(hash(g), hash(RULES.parse(TEXT)))
        self.assertEqual(repr(g), str(g))

    def test_run(self):
        y, = self.graph(self.x, self.w)
        np.testing.assert_allclose(y, np.tanh(self.x @ self.w), rtol=1e-6)

    def test_substitute(self):
        g = self.graph.substitute({"n": 3, "m": "2*k"})
        self.assertEqual(g.outputs[0][1].shape, (3, "2*k"))

    def test_vmap(self):
        xs = np.stack([self.x, 2 * self.x, -self.x], axis=1)
        g = self.graph.vmap([1, None], 3, 2)
        y, = g(xs, self.w)
        for i in range(3):
            np.testing.assert_allclose(
                y[:, :, i], np.tanh(xs[:, i] @ self.w), rtol=1e-6)

    def test_jvp_vjp_linearize_transpose(self):
        g = self.graph
        pushed, has_tangent = g.jvp([True, False])
        self.assertEqual(has_tangent, [True])
        y, dy = pushed(self.x, self.w, self.x)
        slope = 1 - np.tanh(self.x @ self.w) ** 2
        np.testing.assert_allclose(dy, slope * (self.x @ self.w), rtol=1e-5)
        pulled = g.vjp(["w"])
        _, dw = pulled(self.x, self.w, np.ones((3, 2), np.float32))
        np.testing.assert_allclose(dw, self.x.T @ slope, rtol=1e-5)
        primal, linear, count = g.linearize([True, True])
        outputs = primal(self.x, self.w)
        self.assertEqual(len(outputs), 1 + count)
        zero = np.zeros_like(self.w)
        np.testing.assert_allclose(
            linear(self.x, zero, *outputs[1:])[0], dy, rtol=1e-5)
        product = RULES.parse(TEXT.replace("tanh(%1)", "neg(%1)"))
        turned = product.transpose([True, False])
        np.testing.assert_allclose(
            turned(self.w, np.ones((3, 2), np.float32))[0],
            -np.ones((3, 2)) @ self.w.T, rtol=1e-6)

    def test_grad_and_jacobian(self):
        g = RULES.parse("graph (%x: f64[n]) -> (y: f64[]) {\n"
                        "  %1: f64[n] = mul(%x, %x)\n"
                        "  %2: f64[n] = mul(%1, %x)\n"
                        "  %3: f64[] = reduce_sum(%2, axes: [0])\n"
                        "  return y = %3\n}\n")
        x = np.array([1.0, -2.0, 3.0])
        value, dx = g.grad([True], value=True)(x)
        self.assertEqual(float(value), (x ** 3).sum())
        np.testing.assert_allclose(dx, 3 * x ** 2)
        for kind in ("forward", "reverse"):
            np.testing.assert_allclose(g.jacobian(0, kind)(x)[0], 3 * x ** 2)
        np.testing.assert_allclose(g.jacobian(0, "hessian")(x)[0],
                                   np.diag(6 * x))
        with self.assertRaises(cleave.InvalidArgumentError):
            g.jacobian(0, "sideways")

    def test_expand_and_simplify(self):
        g = RULES.call_graph("softmax", ["f32[n]"], {"axis": 0})
        self.assertIn("softmax", str(g))
        self.assertNotIn("softmax(", str(g.expand()))
        self.assertIn("softmax(", str(g.expand(preserve=["softmax"])))
        self.assertLessEqual(len(g.expand().simplify().json()["nodes"]),
                             len(g.expand().json()["nodes"]))

    def test_aot(self):
        halves = self.graph.aot([True, True], partition="min-cut")
        outputs = halves.forward(self.x, self.w)
        cotangent = np.ones((3, 2), np.float32)
        dx, dw = halves.backward(*outputs[1:], cotangent)
        _, ex, ew = self.graph.vjp()(self.x, self.w, cotangent)
        np.testing.assert_allclose(dx, ex, rtol=1e-5)
        np.testing.assert_allclose(dw, ew, rtol=1e-5)
        self.assertEqual(halves.info["saved"], len(outputs) - 1)

    def test_to_rule(self):
        rules = RULES.load(self.graph.to_rule("tanh_product"))
        y = rules.tanh_product(self.x, self.w)
        np.testing.assert_allclose(y, np.tanh(self.x @ self.w), rtol=1e-6)

    def test_mistakes(self):
        with self.assertRaises(cleave.InvalidArgumentError):
            RULES.parse("graph (")
        with self.assertRaises(cleave.InvalidArgumentError):
            self.graph.vjp([True])
        with self.assertRaises(cleave.InvalidArgumentError):
            self.graph.vjp(["no_such_input"])
        with self.assertRaises(cleave.InvalidArgumentError):
            self.graph.vjp([3, 1])
        with self.assertRaises(cleave.Error):
            self.graph.vmap([0])
        with self.assertRaises(cleave.Error) as caught:
            self.graph(self.x, self.w[:3])
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), str(again), again.code),
                         (type(caught.exception), str(caught.exception),
                          caught.exception.code))


class BuilderTest(unittest.TestCase):

    def test_builds(self):
        b = RULES.builder()
        x = b.input("x", "f32[n]")
        two = b.constant(2, "f32[]")
        y, = b.call("mul", [x, two])
        z, = b.call("softmax", {"x": y}, {"axis": 0})
        joined, = b.call("concatenate", [[y, z]], "axis: 0")
        self.assertEqual(b.type(joined), TensorType("f32", ("2*n",)))
        g = b.finish({"z": z, "joined": joined})
        self.assertEqual([name for name, _ in g.outputs], ["z", "joined"])
        v = np.float32([1, 2, 3])
        e = np.exp(2 * v - 6)
        np.testing.assert_allclose(g(v)[0], e / e.sum(), rtol=1e-6)
        # It begins anew.
        again = b.input("x", "f32[n]")
        first, = b.inline(g, [again])[:1]
        self.assertEqual(len(b.finish({"y": first}).outputs), 1)

    def test_optional_and_variadic_inputs(self):
        g = RULES.call_graph("onnx.Clip", ["f32[n]", None, "f32[]"])
        self.assertEqual(len(g.inputs), 2)
        np.testing.assert_array_equal(
            g(np.float32([1, 5]), np.float32(2))[0], [1, 2])
        g = RULES.call_graph("onnx.Concat", [["f32[n]", "f32[m]"]],
                             {"axis": 0})
        self.assertEqual(g.outputs[0][1].shape[0].replace(" ", ""), "m+n")

    def test_mistakes(self):
        b = RULES.builder()
        x = b.input("x", "f32[2]")
        with self.assertRaises(cleave.InvalidArgumentError):
            b.input("x", "f32[2]")
        with self.assertRaises(cleave.NotFoundError):
            b.call("softmx", [x])
        with self.assertRaises(cleave.InvalidArgumentError):
            b.call("softmax", [x], {"axis": 4})
        with self.assertRaises(cleave.InvalidArgumentError):
            b.input("z", "nonsense")
        with self.assertRaises(cleave.Error):
            b.type(1000)


if __name__ == "__main__":
    unittest.main()
