"""Factorizations whose vectors PyTorch leaves open but for what they have in
common: the factors give the matrix, and are orthogonal.

    python -m unittest torch_vectors
"""

from __future__ import annotations

import unittest

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch

    import cleave
    from cleave.torch.aten_call import AtenCall

_SHAPES = ((4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 1))


@unittest.skipUnless(HAVE_TORCH, WHY)
class Vectors(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.rules = cleave.load()
        torch.manual_seed(0)

    def of(self, name: str, *args):
        packet = getattr(torch.ops.aten, name)
        op = getattr(packet, "Tensor" if name == "frexp" else "default")
        return AtenCall(self.rules, op)(*args)

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
