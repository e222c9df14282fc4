"""Factorizations, by what PyTorch says of them where it leaves open which
vectors they give, and other ops that no shared data covers.

    python -m unittest torch_vectors
"""

from __future__ import annotations

import unittest

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch

    import cleave
    from cleave.torch import helpers
    from cleave.torch.aten_call import AtenCall

_SHAPES = ((4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 1))


@unittest.skipUnless(HAVE_TORCH, WHY)
class Vectors(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.rules = cleave.load()
        torch.manual_seed(0)

    def of(self, name: str, *args, **kwargs):
        packet = getattr(torch.ops.aten, name)
        op = getattr(packet, "Tensor" if name == "frexp" else "default")
        return AtenCall(self.rules, op)(*args, **kwargs)

    def assert_orthogonal(self, q):
        eye = torch.eye(q.shape[-1], dtype=q.dtype).expand(
            *q.shape[:-2], -1, -1)
        torch.testing.assert_close(q.mT @ q, eye)

    def assert_decomposes(self, a, u, s, vh):
        k = s.shape[-1]
        torch.testing.assert_close(u[..., :k] * s[..., None, :]
                                   @ vh[..., :k, :], a)
        self.assert_orthogonal(u)
        self.assert_orthogonal(vh.mT)

    def test_singular_vectors(self):
        for shape in _SHAPES:
            a = torch.randn(*shape, dtype=torch.float64)
            for full in (False, True):
                with self.subTest(shape=shape, full=full):
                    want = torch.linalg.svd(a, full)
                    for name in ("linalg_svd", "_linalg_svd"):
                        got = self.of(name, a, full)
                        self.assertEqual([g.shape for g in got],
                                         [w.shape for w in want])
                        torch.testing.assert_close(got[1], want[1])
                        self.assert_decomposes(a, *got)
                    u, s, v = self.of("svd", a, not full)
                    self.assert_decomposes(a, u, s, v.mT)

    def test_without_vectors(self):
        a = torch.randn(5, 3, dtype=torch.float64)
        for some in (False, True):
            self.assertEqual([t.shape for t in self.of("svd", a, some, False)],
                             [t.shape for t in torch.svd(a, some, False)])
        u, s, vh = self.of("_linalg_svd", a, False, False)
        self.assertEqual((u.numel(), vh.numel()), (0, 0))
        torch.testing.assert_close(s, torch.linalg.svdvals(a))

    def test_columns_of_singular_values_that_are_0(self):
        a = torch.ones(4, 3, dtype=torch.float64)
        self.assert_decomposes(a, *self.of("linalg_svd", a, True))
        self.assert_decomposes(0 * a, *self.of("linalg_svd", 0 * a, False))

    def test_eigenvectors(self):
        a = torch.randn(3, 4, 4, dtype=torch.float64)
        for triangle in ("L", "U"):
            want, _ = torch.linalg.eigh(a, triangle)
            for name in ("linalg_eigh", "_linalg_eigh"):
                values, vectors = self.of(name, a, triangle)
                torch.testing.assert_close(values, want)
                self.assert_orthogonal(vectors)
                half = a.tril() if triangle == "L" else a.triu()
                whole = half + half.mT - torch.diag_embed(a.diagonal(0, 1, 2))
                torch.testing.assert_close(
                    vectors * values[..., None, :] @ vectors.mT, whole)

    def test_what_does_not_depend_on_signs_has_pytorchs_slope(self):
        a = torch.randn(4, 3, dtype=torch.float64)

        def nuclear(svd):
            def loss(x):
                u, s, vh = svd(x)
                return ((u * s) @ vh * a).sum() + s.sum() + (u @ vh).sum()
            return torch.func.grad(loss)(a)

        torch.testing.assert_close(
            nuclear(lambda x: self.of("linalg_svd", x, False)),
            nuclear(lambda x: torch.linalg.svd(x, False)))

    def test_roots_and_polar_factors(self):
        a = torch.randn(2, 4, 3, dtype=torch.float64)
        square = a.mT @ a + torch.eye(3)
        torch.testing.assert_close(self.of("linalg_matrix_sqrth", square),
                                   torch.linalg.matrix_sqrth(square))
        torch.testing.assert_close(self.of("linalg_polar", a),
                                   tuple(torch.linalg.polar(a)))

    def test_eigenvectors_of_any_matrix(self):
        double = torch.float64
        cycle = torch.eye(7, dtype=double)[torch.tensor([1, 2, 3, 4, 5, 6, 0])]
        jordan = 2 * torch.eye(6, dtype=double) + torch.diag(
            torch.ones(5, dtype=double), 1)
        graded = torch.randn(6, 6, dtype=double) * 10. ** torch.arange(6)
        for name, a in {
                "random": torch.randn(2, 6, 6, dtype=double),
                "complex": torch.randn(5, 5, dtype=torch.complex128),
                "cycle": cycle, "defective": jordan, "graded": graded,
                "large": torch.randn(4, 4, dtype=double) * 1e300,
                "zero": torch.zeros(3, 3, dtype=double),
                "one": torch.full((1, 1), 3., dtype=double)}.items():
            with self.subTest(name):
                values, vectors = self.of("linalg_eig", a)
                size = a.abs().max().clamp_min(1)
                left = (a / size).to(values.dtype) @ vectors
                torch.testing.assert_close(
                    left, vectors * (values / size)[..., None, :],
                    rtol=0, atol=1e-14)
                torch.testing.assert_close(
                    torch.linalg.vector_norm(vectors, dim=-2),
                    torch.ones(values.shape, dtype=double))
                for op in ("linalg_eigvals", "_linalg_eigvals"):
                    self.assertTrue(torch.equal(self.of(op, a), values))
        self.assertEqual(self.of("linalg_eig", torch.zeros(0, 0))[1].shape,
                         (0, 0))
        lost = self.of("linalg_eigvals", torch.tensor([[torch.inf, 1], [2, 3]]))
        self.assertTrue(lost.isnan().all())

    def test_eigenvalues_have_pytorchs_slope(self):
        a = torch.randn(4, 4, dtype=torch.float64)

        def loss(x):
            found = self.rules.eigenpairs(x, 0 * x)
            re, im = found[0], found[1]
            return (re ** 3 - 3 * re * im ** 2 + re ** 2 + im ** 2).sum()

        def theirs(x):
            values = torch.linalg.eigvals(x)
            return (values ** 3).real.sum() + (values.abs() ** 2).sum()

        torch.testing.assert_close(
            torch.from_numpy(cleave.grad(loss)(a.numpy())),
            torch.func.grad(theirs)(a))

    def test_symmetric_factors(self):
        for n in (0, 1, 2, 3, 5, 8):
            for empty_diagonal in (False, True):
                a = torch.randn(2, n, n, dtype=torch.float64)
                if empty_diagonal and n > 1:
                    a = a - torch.diag_embed(a.diagonal(0, 1, 2))
                with self.subTest(n=n, empty_diagonal=empty_diagonal):
                    want = torch.linalg.ldl_factor(a)
                    got = self.of("linalg_ldl_factor", a)
                    torch.testing.assert_close(got, tuple(want))
                    b = torch.randn(2, n, 3, dtype=torch.float64)
                    torch.testing.assert_close(
                        self.of("linalg_ldl_solve", *want, b),
                        torch.linalg.ldl_solve(*want, b))
        singular = torch.tensor([[[1., 2], [2, 4]], [[0, 0], [0, 0]]])
        self.assertEqual(self.of("linalg_ldl_factor_ex", singular)[2].tolist(),
                         [2, 1])

    def test_right_sides_are_broadcast(self):
        a = torch.randn(2, 3, 3, dtype=torch.float64)
        b = torch.randn(4, 1, 3, 2, dtype=torch.float64)
        x = self.of("linalg_ldl_solve", *self.of("linalg_ldl_factor", a), b)
        whole = a.tril() + a.tril(-1).mT
        torch.testing.assert_close(whole @ x, b.expand(4, 2, 3, 2))

    def test_hashes(self):
        for x in (torch.randn(3, 4, 5), torch.tensor([-1, 5], dtype=torch.int8),
                  torch.randn(7).half(), torch.tensor([True, True, True]),
                  torch.tensor(-0.0), torch.randint(-99, 99, (4, 3))):
            self.assertTrue(torch.equal(self.of("hash_tensor", x),
                                        torch.hash_tensor(x)))
            if x.dim():
                self.assertTrue(torch.equal(
                    self.of("hash_tensor", x, [-1], keepdim=True),
                    torch.hash_tensor(x, [-1], keepdim=True)))

    def test_histograms_of_points(self):
        aten = torch.ops.aten
        for x, options in (
                (torch.rand(20, 2), {}),
                (torch.rand(4, 5, 3),
                 {"weight": torch.rand(4, 5), "density": True}),
                (torch.rand(9, 2), {"range": [0.2, 0.9, 0.0, 0.5]}),
                (torch.ones(3, 2), {}), (torch.rand(0, 2), {})):
            bins = [3, 4, 2][:x.shape[-1]]
            for name in ("_histogramdd_bin_edges",
                         "_histogramdd_from_bin_cts"):
                torch.testing.assert_close(
                    self.of(name, x, bins, **options),
                    getattr(aten, name)(x, bins, **options))
            edges = [torch.linspace(0, 1, n + 1) for n in bins]
            options.pop("range", None)
            name = "_histogramdd_from_bin_tensors"
            torch.testing.assert_close(self.of(name, x, edges, **options),
                                       getattr(aten, name)(x, edges, **options))

    def test_a_pad_that_crops_more_than_there_is(self):
        x = torch.tensor([1.0])
        self.assertEqual(helpers.pad(x, 7.0, [-2], [3], [0]).tolist(), [7., 7.])
        self.assertEqual(helpers.pad(x, 7.0, [2], [-2], [0]).tolist(), [7.])

    def test_parts_of_floats(self):
        for dtype in (torch.float64, torch.float32, torch.float16,
                      torch.bfloat16):
            info = torch.finfo(dtype)
            x = torch.tensor([0., 1, -0.75, 10, info.max, info.tiny,
                              -info.smallest_normal / 4, 3e-5], dtype=dtype)
            got = self.of("frexp", x)
            want = torch.frexp(x)
            torch.testing.assert_close(got[0], want[0], rtol=0, atol=0)
            self.assertTrue(torch.equal(got[1], want[1]), dtype)


if __name__ == "__main__":
    unittest.main()
