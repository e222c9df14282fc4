"""Ops of cleave.torch below torch.compile, torch.export, fake tensors, autocast
and the dispatcher, and with tensors of all kinds.

    python -m unittest torch_compile
"""

from __future__ import annotations

import unittest

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch
    import torch.nn.functional as F
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.func import jvp, vmap

    import cleave
    import cleave.torch

_RULES = """language 1

/// The sum of x and its double.
op thrice(x: T[S..]) -> T[S..]
  where T: float
  = x + 2 * x

fn pick(x: f32[n]) -> f32[] = logsumexp(x, axes: [0])
"""


@unittest.skipUnless(HAVE_TORCH, WHY)
class Compiled(unittest.TestCase):
    """Traced programs: both modes, static and dynamic sizes."""

    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()

    def modes(self):
        return [cleave.torch.register(mode=mode)
                for mode in ("kernel", "inline")]

    def test_forward_and_backward(self):
        for ns in self.modes():
            def loss(x, w, ns=ns):
                y = ns.silu(ns.linear(x, w))
                return ns.mean(ns.softmax(y, axis=-1) * torch.arange(3.0))

            compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
            x = torch.randn(5, 4)
            for call in (loss, compiled):
                w = torch.randn(3, 4, generator=torch.manual_seed(1)) \
                    .requires_grad_()
                value = call(x, w)
                value.backward()
                want = (F.silu(x @ w.detach().T).softmax(-1)
                        * torch.arange(3.0)).mean()
                torch.testing.assert_close(value.detach(), want)
                first = w.grad if call is loss else first
                torch.testing.assert_close(w.grad, first)

    def test_transforms_inside(self):
        for ns in self.modes():
            def f(x, ns=ns):
                return ns.gelu(ns.softmax(x, axis=0))

            def theirs(x):
                return F.gelu(x.softmax(0))

            x = torch.randn(4, 3)
            for make in (
                    lambda g: lambda x: vmap(g)(x),
                    lambda g: lambda x: jvp(g, (x,), (x,))[1],
                    lambda g: lambda x: torch.func.grad(
                        lambda v: g(v).square().sum())(x),
                    lambda g: lambda x: vmap(torch.func.grad(
                        lambda v: g(v).square().sum()))(x)):
                torch._dynamo.reset()
                run = torch.compile(make(f), backend="aot_eager",
                                    fullgraph=True)
                torch.testing.assert_close(run(x), make(theirs)(x))

    def test_dynamic_sizes_trace_once(self):
        for ns in self.modes():
            graphs = []

            def backend(graph, example, graphs=graphs):
                graphs.append(graph)
                return graph.forward

            run = torch.compile(lambda x, ns=ns: ns.softmax(x, axis=1),
                                backend=backend, dynamic=True, fullgraph=True)
            for shape in ((3, 4), (5, 7), (8, 2)):
                x = torch.randn(shape)
                torch.testing.assert_close(run(x), x.softmax(1))
            self.assertEqual(len(graphs), 1)

    def test_export_keeps_one_call(self):
        ns = cleave.torch.register()

        class Model(torch.nn.Module):
            def forward(self, x):
                return ns.layer_norm(x, N=[4])[0]

        rows = torch.export.Dim("rows", min=2)
        program = torch.export.export(Model(), (torch.randn(3, 4),),
                                      dynamic_shapes=({0: rows},))
        calls = [n for n in program.graph.nodes
                 if n.target is torch.ops.cleave.call.default]
        self.assertEqual(len(calls), 1)
        x = torch.randn(6, 4)
        torch.testing.assert_close(program.module()(x), F.layer_norm(x, [4]))

    def test_inline_has_no_call(self):
        ns = cleave.torch.register(mode="inline")

        class Model(torch.nn.Module):
            def forward(self, x):
                return ns.softplus(x)

        program = torch.export.export(Model(), (torch.randn(3, 4),))
        names = {str(n.target) for n in program.graph.nodes}
        self.assertFalse([n for n in names if "cleave" in n])
        self.assertTrue([n for n in names if "log1p" in n])


@unittest.skipUnless(HAVE_TORCH, WHY)
class Tensors(unittest.TestCase):
    """What the calls take."""

    def setUp(self):
        torch.manual_seed(0)
        self.ns = cleave.torch.register()

    def test_traces_have_symbolic_sizes(self):
        for ns in (self.ns, cleave.torch.register(mode="inline")):
            shapes = []

            def run(x, ns=ns, shapes=shapes):
                y = ns.glu(x, axis=1)
                shapes.append((x.shape, y.shape))
                return y

            make_fx(lambda x: run(x),  # noqa: B023
                    tracing_mode="symbolic")(
                torch.randn(6, 4))
            x, y = shapes[0]
            self.assertIsInstance(y[0], torch.SymInt)
            self.assertTrue(y[0] == x[0])
            self.assertTrue(y[1] * 2 == x[1])

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            x = torch.randn(5, 6).to(dtype)
            for mode in ("kernel", "inline"):
                ns = cleave.torch.register(mode=mode)
                y = ns.softmax(x, axis=1)
                self.assertEqual(y.dtype, dtype)
                torch.testing.assert_close(y, x.softmax(1))
                g = torch.func.grad(lambda v, ns=ns: ns.mean(
                    ns.gelu(v)).float())(x)
                self.assertEqual(g.dtype, dtype)

    def test_strides_and_gradients(self):
        x = torch.randn(6, 5, 4)
        for view in (x.transpose(0, 2), x[::2, :, 1:], x[:1].expand(3, 5, 4),
                     x.movedim(1, 0)[:, ::3]):
            torch.testing.assert_close(self.ns.softmax(view, axis=1),
                                       view.softmax(1))
        leaf = x.clone().requires_grad_()
        self.ns.logsumexp(leaf.transpose(0, 1), axes=[0]).sum().backward()
        torch.testing.assert_close(leaf.grad, x.softmax(1))
        with torch.no_grad():
            self.assertFalse(self.ns.silu(leaf).requires_grad)

    def test_empty_and_scalar_tensors(self):
        self.assertEqual(self.ns.softmax(torch.randn(0, 3), axis=1).shape,
                         (0, 3))
        torch.testing.assert_close(self.ns.silu(torch.tensor(2.0)),
                                   F.silu(torch.tensor(2.0)))

    def test_integers_and_several_results(self):
        ids = torch.tensor([[1, 0], [2, 2]])
        table = torch.randn(3, 4)
        torch.testing.assert_close(self.ns.embedding(table, ids), table[ids])
        values, places = self.ns.topk(table, k=2)
        want = table.topk(2)
        torch.testing.assert_close((values, places), tuple(want))
        self.assertEqual(
            vmap(lambda i: self.ns.floor_divide(i, ids + 1))(ids + 5).dtype,
            torch.int64)

    def test_autocast_casts_contractions(self):
        x, w = torch.randn(3, 4), torch.randn(5, 4)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(self.ns.linear(x, w).dtype, torch.bfloat16)
            half = x.bfloat16()
            self.assertEqual(self.ns.softmax(half, axis=1).dtype,
                             torch.float32)
            self.assertEqual(torch.ops.cleave.linear(x, w).dtype,
                             torch.bfloat16)

    def test_the_dispatcher_has_every_op(self):
        rules = cleave.load()
        missing = [n for n in rules.names("op")
                   if not hasattr(torch.ops.cleave, n)]
        self.assertEqual(missing, [])
        x = torch.randn(3, 4)
        f = torch.ops.cleave.softmax
        torch.testing.assert_close(f(x, axis=1), x.softmax(1))
        torch.testing.assert_close(f(x), x.softmax(-1))
        hessian = torch.func.hessian(lambda v: f(v, axis=0).square().sum())
        want = torch.func.hessian(lambda v: v.softmax(0).square().sum())
        torch.testing.assert_close(hessian(x[0]), want(x[0]))
        torch.testing.assert_close(vmap(f)(x), x.softmax(-1))

    def test_repeated_calls_differ_in_what_they_are_given(self):
        """A call that was seen goes to its kernel at once: one with other
        shapes, dtypes or attributes is another call."""
        for _ in range(2):
            for shape in ((3, 4), (4, 4), (0, 4), (3, 1)):
                for dtype in (torch.float32, torch.float64):
                    x = torch.randn(shape, dtype=dtype)
                    for axis in (0, 1, -1):
                        torch.testing.assert_close(
                            self.ns.softmax(x, axis=axis), x.softmax(axis))
            x = torch.randn(3, 4)
            self.assertEqual(self.ns.sum(x, axes=[1], keepdims=True).shape,
                             (3, 1))
            self.assertEqual(self.ns.sum(x, axes=[1], keepdims=False).shape,
                             (3,))

    def test_calls_that_were_seen_still_meet_transforms(self):
        x = torch.randn(3, 4)
        want = torch.softmax(x, 1)
        for _ in range(3):
            torch.testing.assert_close(self.ns.softmax(x, axis=1), want)
        torch.testing.assert_close(
            vmap(lambda v: self.ns.softmax(v, axis=0))(x), want)
        y = x.clone().requires_grad_()
        self.ns.softmax(y, axis=1).square().sum().backward()
        torch.testing.assert_close(
            y.grad, torch.func.grad(lambda v: v.softmax(1).square().sum())(x))
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(self.ns.matmul(x, x.mT).dtype, torch.bfloat16)
        negated = torch.complex(x, x).conj().imag
        self.assertTrue(negated.is_neg())
        torch.testing.assert_close(self.ns.softmax(negated, axis=1),
                                   torch.softmax(-x, 1))
        torch.testing.assert_close(
            self.ns.softmax(x.t().contiguous().t(), axis=1), want)

    def test_own_rules(self):
        rules = cleave.load(_RULES)
        ns = cleave.torch.register(rules)
        x = torch.randn(4)
        torch.testing.assert_close(ns.thrice(x), 3 * x)
        torch.testing.assert_close(ns.fn.pick(x), x.logsumexp(0))
        torch.testing.assert_close(torch.func.grad(ns.fn.pick)(x),
                                   x.softmax(0))
        torch.testing.assert_close(torch.ops.cleave.thrice(x), 3 * x)

    def test_mistakes_are_told(self):
        with self.assertRaises(AttributeError):
            self.ns.no_such_op
        with self.assertRaisesRegex(TypeError, "no argument `axes`"):
            self.ns.softmax(torch.randn(3), axes=0)
        with self.assertRaises(cleave.Error):
            self.ns.matmul(torch.randn(3, 4), torch.randn(5, 6))


if __name__ == "__main__":
    unittest.main()
