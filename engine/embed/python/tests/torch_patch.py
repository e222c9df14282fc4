"""What cleave.torch.patch_aten gives, against PyTorch: on the samples of
PyTorch's own tests each patched op keeps its values, its batches are its single
calls, and its derivatives are those of finite differences, forward, in reverse
and twice.

    python -m unittest torch_patch
"""

from __future__ import annotations

import unittest
from unittest import mock

from torch_testing import HAVE_TORCH, WHY, samples_of

if HAVE_TORCH:
    import torch
    import torch.autograd.forward_ad as forward_ad
    import torch.nn.functional as F
    from torch.func import grad, hessian, jvp, vjp, vmap

    import cleave
    import cleave.torch
    from cleave.torch.aten_call import AtenCall, AtenGradient, bind_schema
    from cleave.torch.call import Op, guards_hold
    from cleave.torch.signature import Sizes
    from cleave.torch.targets import TARGETS, Target

_LIMIT = 6
# PyTorch's kernel gives another value on purpose: see torch.md.
_VALUES = {"special_log_ndtr": 1e-6, "hardsigmoid_backward": 1e-7,
           "special_airy_ai": 1e-8}
# Arguments stand for values that depend on others: differences of the op by
# itself say nothing. `Promises` differentiates what they belong to.
_WITH_RESULTS = ("_scaled_dot_product_flash_attention_for_cpu_backward",
                 "_pdist_backward", "_cdist_backward")


def _outputs(result):
    results = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(r for r in results if isinstance(r, torch.Tensor))


class _Call:
    """A call of an op as a function of its float tensors."""

    def __init__(self, op, args, kwargs):
        self.op = op
        self.bound = bind_schema(op, args, kwargs)
        self.positional = [a.name for a in op._schema.arguments
                           if not a.kwarg_only and a.name in self.bound]
        self.names = [n for n, v in self.bound.items()
                      if isinstance(v, torch.Tensor) and v.is_floating_point()]
        self.point = tuple(self.bound[n].detach() for n in self.names)

    def __call__(self, *tensors, by=None):
        bound = {**self.bound, **dict(zip(self.names, tensors))}
        args = [bound.pop(n) for n in self.positional]
        return tuple(o for o in _outputs((by or self.op)(*args, **bound))
                     if o.is_floating_point())


def _calls(name: str):
    op, found = samples_of(name)
    return op, [_Call(op, a, k) for a, k in found[:_LIMIT]]


def _direction(x):
    n = torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)
    return torch.cos(n + 1)


def _difference(f, point, directions, step=1e-6):
    def at(sign):
        return f(*[p + sign * step * d for p, d in zip(point, directions)])
    return tuple((a - b) / (2 * step) for a, b in zip(at(1), at(-1)))


@unittest.skipUnless(HAVE_TORCH, WHY)
class Patched(unittest.TestCase):
    """Every target of patch_aten that has samples."""

    @classmethod
    def setUpClass(cls):
        cls.rules = cleave.load()
        cleave.torch.unpatch()
        cls.calls = {t.name: _calls(t.name) for t in TARGETS if not t.own}
        # Before anything is patched.
        cls.wanted = {name: [c(*c.point) for c in calls]
                      for name, (_, calls) in cls.calls.items()}
        torch._C._functorch._set_vmap_fallback_enabled(False)

    @classmethod
    def tearDownClass(cls):
        cleave.torch.unpatch()
        torch._C._functorch._set_vmap_fallback_enabled(True)

    def each(self):
        for target in TARGETS:
            # Norms that update arguments have tests of their own.
            if target.own or target.updates:
                continue
            op, calls = self.calls[target.name]
            for k, call in enumerate(calls):
                if target.when is not None:
                    args = [call.bound[n] for n in call.positional]
                    if not target.when(args, call.bound):
                        continue
                yield target, k, call, self.wanted[target.name][k]

    def test_rules_have_the_kernels_values(self):
        compared = set()
        for target, k, call, want in self.each():
            if target.twin is not None:
                continue  # PyTorch's own kernel makes its values
            with self.subTest(op=target.name, sample=k):
                by = AtenCall(self.rules, call.op) if target.gradient is None \
                    else AtenGradient(self.rules, call.op, *target.gradient)
                rtol = _VALUES.get(target.name, 1e-9)
                torch.testing.assert_close(call(*call.point, by=by), want,
                                           rtol=rtol, atol=rtol,
                                           equal_nan=True)
                compared.add(target.name)
        self.assertGreater(len(compared), 45)

    def test_values_and_batches_after_the_patch(self):
        cleave.torch.patch_aten(rules=self.rules)
        with forward_ad.dual_level():
            pass
        for target, k, call, want in self.each():
            with self.subTest(op=target.name, sample=k):
                torch.testing.assert_close(call(*call.point), want, rtol=0,
                                           atol=0, equal_nan=True)
                if not call.point:
                    continue
                first, *rest = call.point
                other = first.flip(0) if first.dim() else first
                axes = (0,) + (None,) * len(rest)
                got = vmap(call, in_dims=axes)(torch.stack([first, other]),
                                               *rest)
                for j, x in enumerate((first, other)):
                    for g, w in zip(got, call(x, *rest)):
                        torch.testing.assert_close(g[j], w, equal_nan=True,
                                                   rtol=1e-6, atol=1e-9)
        cleave.torch.unpatch()

    def test_derivatives(self):
        cleave.torch.patch_aten(rules=self.rules)
        compared = set()
        for target, k, call, want in self.each():
            if target.name in _WITH_RESULTS or not want or not call.point \
                    or not (target.autograd or target.second
                            or target.composite):
                continue
            # An argument that stands for a value of PyTorch's, as the `cdist`
            # of a backward op, has no derivative.
            directions = tuple(_direction(p) for p in call.point)
            if target.gradient is not None:
                names = target.gradient[2]
                live = [n in names or n in target.gradient[1]
                        for n in call.names]
                directions = tuple(d if a else torch.zeros_like(d)
                                   for d, a in zip(directions, live))
            if not all(torch.isfinite(w).all() for w in want):
                continue
            with self.subTest(op=target.name, sample=k):
                expected = _difference(call, call.point, directions)
                tangents = jvp(call, call.point, directions)[1]
                torch.testing.assert_close(tangents, expected, rtol=1e-5,
                                           atol=1e-6)
                # PyTorch's own reverse mode is not ours to answer for.
                if target.second or target.composite:
                    y, pull = vjp(call, *call.point)
                    cotangents = tuple(_direction(v) for v in y)
                    back = pull(cotangents)
                    left = sum((c * t).sum()
                               for c, t in zip(cotangents, tangents))
                    right = sum((b * d).sum()
                                for b, d in zip(back, directions))
                    torch.testing.assert_close(left, right, rtol=1e-6,
                                               atol=1e-6)
                compared.add(target.name)
        self.assertGreater(len(compared), 25)
        cleave.torch.unpatch()


@unittest.skipUnless(HAVE_TORCH, WHY)
class Promises(unittest.TestCase):
    """Single claims of torch.md."""

    def setUp(self):
        torch.manual_seed(0)
        cleave.torch.patch_aten()
        self.addCleanup(cleave.torch.unpatch)

    def test_multi_margin_loss(self):
        target = torch.tensor([1, 0, 3])
        x = torch.randn(3, 4, dtype=torch.float64)

        def loss(x):
            return F.multi_margin_loss(x * x, target)

        t = _direction(x)
        torch.testing.assert_close(jvp(loss, (x,), (t,))[1],
                                   (grad(loss)(x) * t).sum())
        many = torch.stack([x, 2 * x])
        torch.testing.assert_close(vmap(grad(loss))(many)[1],
                                   grad(loss)(2 * x))
        step = 1e-6
        want = (grad(loss)(x + step * t) - grad(loss)(x - step * t)) / 2e-6
        torch.testing.assert_close(jvp(grad(loss), (x,), (t,))[1], want,
                                   rtol=1e-6, atol=1e-7)

    def test_renorm(self):
        x = torch.randn(2, 3, 4, dtype=torch.float64)
        got = vmap(lambda v: torch.renorm(v, 2, 0, 1.0))(x)
        want = torch.stack([torch.renorm(v, 2, 0, 1.0) for v in x])
        torch.testing.assert_close(got, want)

    def test_second_derivatives_are_right(self):
        x = torch.tensor([2.0, 0.0, 3.0, 0.5], dtype=torch.float64)
        t = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)

        def second(f):
            return jvp(lambda v: jvp(f, (v,), (t,))[1], (x,), (t,))[1]

        def product(v):
            values = [v[0]]
            for k in range(1, 4):
                values.append(values[-1] * v[k])
            return torch.stack(values)

        torch.testing.assert_close(second(lambda v: v.cumprod(0)),
                                   second(product))

        def norm(v):
            d = v - v.mean()
            return d / torch.sqrt((d * d).mean() + 1e-5)

        torch.testing.assert_close(second(lambda v: F.layer_norm(v, [4])),
                                   second(norm))

    def test_batch_norm(self):
        """Every nesting of derivatives, against the same by simple ops."""
        x = torch.randn(3, 2, 4, dtype=torch.float64)
        w, b = torch.randn(2, 2, dtype=torch.float64)
        point = (x, w, b)
        t = tuple(_direction(v) for v in point)

        def simple(x, w, b):
            d = x - x.mean((0, 2), keepdim=True)
            r = ((d * d).mean((0, 2), keepdim=True) + 1e-5)**-0.5
            return d * r * w[:, None] + b[:, None]

        def theirs(x, w, b):
            mean, var = (torch.ones(2, dtype=x.dtype) for _ in range(2))
            return F.batch_norm(x, mean, var, w, b, training=True)

        def without_running(x, w, b):
            return F.batch_norm(x, None, None, w, b, training=True)

        def along(f):
            return lambda *a: jvp(f, a, t)[1]

        def back(f):
            return lambda *a: sum(
                (g * d).sum() for g, d in zip(
                    grad(lambda *v: torch.sin(f(*v)).sum(), (0, 1, 2))(*a), t))

        nestings = [along, back]
        nestings += [lambda f, a=a, b=b: a(b(f))
                     for a in (along, back) for b in (along, back)]
        nestings.append(lambda f: along(along(along(f))))
        for f in (theirs, without_running):
            for k, nesting in enumerate(nestings):
                with self.subTest(function=f.__name__, nesting=k):
                    torch.testing.assert_close(
                        nesting(f)(*point), nesting(simple)(*point),
                        rtol=1e-9, atol=1e-9)
        many = tuple(torch.stack([v, 0.9 * v]) for v in point)
        for nesting in (lambda f: f, along, nestings[2]):
            torch.testing.assert_close(
                vmap(nesting(without_running))(*many),
                vmap(nesting(simple))(*many), rtol=1e-9, atol=1e-9)
        # And one by differences of the op alone.
        slope = along(theirs)
        step = 1e-6
        want = (slope(*[p + step * d for p, d in zip(point, t)])[0]
                - slope(*[p - step * d for p, d in zip(point, t)])[0]) / 2e-6
        torch.testing.assert_close(along(slope)(*point)[0], want, rtol=1e-6,
                                   atol=1e-6)

    def test_batch_norm_by_running_statistics(self):
        x = torch.randn(3, 2, 4, dtype=torch.float64)
        mean = torch.tensor([0.5, -1.0], dtype=torch.float64)
        var = torch.tensor([2.0, 0.5], dtype=torch.float64)
        t = _direction(x)

        def curve(f):
            return jvp(lambda v: jvp(lambda u: torch.sin(f(u)), (v,), (t,))[1],
                       (x,), (t,))[1]

        got = curve(lambda v: F.batch_norm(v, mean, var))
        want = curve(lambda v: (v - mean[:, None])
                     * (var[:, None] + 1e-5)**-0.5)
        torch.testing.assert_close(got, want)

    def test_batch_norm_updates_once(self):
        """The running statistics change as they do without derivatives."""
        x = torch.randn(3, 2, 4, dtype=torch.float64)
        t = _direction(x)

        def after(run):
            mean, var = (torch.ones(2, dtype=x.dtype) for _ in range(2))
            run(lambda v: F.batch_norm(v, mean, var, training=True,
                                       momentum=0.3))
            return mean, var

        want = after(lambda f: f(x))
        for run in (lambda f: jvp(f, (x,), (t,)),
                    lambda f: jvp(lambda v: jvp(f, (v,), (t,))[1], (x,), (t,)),
                    lambda f: grad(lambda v: jvp(f, (v,), (t,))[1].sum())(x)):
            torch.testing.assert_close(after(run), want, rtol=0, atol=0)

    def test_statistics_of_norms_have_tangents(self):
        x = torch.randn(3, 2, 4, dtype=torch.float64)
        t = _direction(x)
        ops = torch.ops.aten
        for f in (lambda v: ops.native_batch_norm(v, None, None, None, None,
                                                  True, 0.1, 1e-5),
                  lambda v: ops._native_batch_norm_legit(
                      v, None, None, True, 0.1, 1e-5),
                  lambda v: ops._batch_norm_with_update(
                      v, None, None, torch.zeros(2).double(),
                      torch.ones(2).double(), 0.1, 1e-5)[:3],
                  lambda v: ops.native_layer_norm(v, [4], None, None, 1e-5)):
            want = _difference(f, (x,), (t,))
            torch.testing.assert_close(jvp(f, (x,), (t,))[1], want, rtol=1e-6,
                                       atol=1e-8)

    def test_second_derivatives_of_what_keeps_results(self):
        q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64)
                   for _ in range(3))
        x = torch.randn(4, 3, dtype=torch.float64)
        for f, point in (
                (lambda q: F.scaled_dot_product_attention(q, k, v), q),
                (lambda k: F.scaled_dot_product_attention(q, k, v,
                                                          is_causal=True), k),
                (lambda x: F.pdist(x), x),
                (lambda x: torch.cdist(x, 2 * x), x),
                (lambda x: torch.cdist(x, x + 1, p=3.0), x)):
            def gradient(x, f=f):
                return grad(lambda v: torch.sin(f(v)).sum())(x)
            t = _direction(point)
            want, = _difference(lambda x: (gradient(x),), (point,), (t,))
            torch.testing.assert_close(jvp(gradient, (point,), (t,))[1], want,
                                       rtol=1e-5, atol=1e-6)
            leaf = point.clone().requires_grad_()
            first, = torch.autograd.grad(torch.sin(f(leaf)).sum(), leaf,
                                         create_graph=True)
            second, = torch.autograd.grad((first * t).sum(), leaf)
            torch.testing.assert_close(second, want, rtol=1e-5, atol=1e-6)
            many = torch.stack([point, point + 0.1])
            torch.testing.assert_close(vmap(gradient)(many)[0],
                                       gradient(point))

    def test_polynomials_have_derivatives(self):
        x = torch.tensor(0.3, dtype=torch.float64)
        n = torch.tensor(3)
        for name, slope in (("chebyshev_polynomial_t", 12 * 0.09 - 3),
                            ("legendre_polynomial_p", 7.5 * 0.09 - 1.5),
                            ("hermite_polynomial_h", 24 * 0.09 - 12)):
            def f(v, name=name):
                return getattr(torch.special, name)(v, n)
            for got in (grad(f)(x), jvp(f, (x,), (torch.ones_like(x),))[1]):
                torch.testing.assert_close(got, torch.tensor(slope).double())
        bent = hessian(lambda v: torch.special.chebyshev_polynomial_t(v, n))(x)
        torch.testing.assert_close(bent, 24 * x)

    def test_the_patch_can_be_undone(self):
        x = torch.randn(3, 4)
        target = torch.tensor([1, 0, 3])
        cleave.torch.unpatch()
        with self.assertRaises(NotImplementedError):
            jvp(lambda v: F.multi_margin_loss(v, target), (x,), (x,))
        report = cleave.torch.patch_aten("renorm")
        self.assertEqual(list(report.given), ["renorm"])
        with self.assertRaises(NotImplementedError):
            jvp(lambda v: F.multi_margin_loss(v, target), (x,), (x,))
        report = cleave.torch.patch_aten(["renorm", "no_such_op"])
        self.assertIn("no_such_op", report.refused)

    def test_arguments_of_calls(self):
        """Numbers keep their kind, and PyTorch's own values have a notation."""
        aten, rules = torch.ops.aten, cleave.load()
        integers, flags = torch.arange(3), torch.tensor([True, False])
        for op, args, named in (
                (aten.add.Tensor, (integers, 2.5), {}),
                (aten.add.Tensor, (flags, 2), {}),
                (aten.add.Tensor, (torch.ones(2, dtype=torch.float64), 0.1),
                 {}),
                (aten.add.Scalar, (flags, True), {}),
                (aten.add.Scalar, (flags, 1), {}),
                (aten.add.Scalar, (torch.ones(2), True), {}),
                (aten.clone.default, (torch.ones(2),),
                 {"memory_format": torch.preserve_format}),
                (aten._to_copy.default, (torch.ones(2),),
                 {"dtype": torch.float64, "layout": torch.strided,
                  "device": torch.device("cpu")}),
                (aten.split.Tensor, (integers, 2), {}),
                (aten.split.Tensor, (integers, 3), {})):
            with self.subTest(str(op)):
                torch.testing.assert_close(AtenCall(rules, op)(*args, **named),
                                           op(*args, **named), rtol=0, atol=0)
        with self.assertRaisesRegex(TypeError, "is no attribute of a rule"):
            AtenCall(rules, aten.add.Scalar)(flags, 2j)

    def test_sizes_choose_branches_of_called_ops(self):
        rules = cleave.load(
            "language 1\n\n"
            "op scaled(x: T[n]) -> T[n]\n  where T: float\n"
            "  = if n < 3 then x else 2 * x\n\n"
            "op rescaled(x: T[n]) -> T[n]\n  where T: float\n"
            "  = scaled(x)\n")
        for mode in ("kernel", "inline"):
            op = Op(rules, "rescaled", mode)
            for n in (2, 5, 1, 4):
                with self.subTest(mode=mode, n=n):
                    x = torch.ones(n, requires_grad=True)
                    y = op(x)
                    y.sum().backward()
                    want = torch.full((n,), 1.0 if n < 3 else 2.0)
                    torch.testing.assert_close(y, want)
                    torch.testing.assert_close(x.grad, want)

    def test_an_op_without_a_rule_is_refused(self):
        targets = (Target("nonzero_numpy"), Target("renorm"))
        with mock.patch("cleave.torch.patch.TARGETS", targets):
            report = cleave.torch.patch_aten()
        self.assertIn("nonzero_numpy", report.refused)
        self.assertEqual(list(report.given), ["renorm"])

    def test_autocast_casts_first(self):
        target = torch.tensor([1, 0, 3])
        x = torch.randn(3, 4).bfloat16()

        def loss(v):
            return F.multi_margin_loss(v, target)

        with torch.autocast("cpu", torch.bfloat16):
            want = loss(x)
            value, slope = jvp(loss, (x,), (x,))
        self.assertEqual(value.dtype, want.dtype)
        torch.testing.assert_close(value, want)
        exact = jvp(loss, (x.double(),), (x.double(),))[1]
        torch.testing.assert_close(slope.double(), exact, rtol=1e-2, atol=1e-3)

    def test_compiled_jvp(self):
        target = torch.tensor([1, 0, 3])
        x = torch.randn(3, 4)

        def slope(v):
            return jvp(lambda u: F.multi_margin_loss(u, target), (v,), (v,))[1]

        run = torch.compile(slope, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(run(x), slope(x))


@unittest.skipUnless(HAVE_TORCH, WHY)
class Guards(unittest.TestCase):
    def test_a_division_by_0_is_no_condition_that_holds(self):
        holds = guards_hold(['12 // (s0 - 2) >= 3: "a branch by sizes"'])

        def of(extent):
            sizes = Sizes()
            sizes.type(torch.zeros(extent))
            return holds(sizes)

        self.assertTrue(of(6))
        self.assertFalse(of(7))
        self.assertFalse(of(2))


if __name__ == "__main__":
    unittest.main()
