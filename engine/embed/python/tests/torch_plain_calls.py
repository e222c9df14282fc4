"""Calls that need nothing of cleave.torch.patch_aten: they reach no Python of
ours, and run at PyTorch's speed.

    python -m unittest torch_plain_calls
"""

from __future__ import annotations

import os
import sys
import unittest

from torch_testing import HAVE_TORCH, WHY, samples_of

if HAVE_TORCH:
    import torch
    import torch.autograd.forward_ad as forward_ad
    import torch.nn.functional as F
    from torch.func import jvp

    import cleave
    import cleave.torch
    from cleave.torch.check import aten_op
    from cleave.torch.targets import TARGETS


def _as_leaves(op, args) -> list:
    """The arguments with requires_grad, where PyTorch allows it."""
    return [a.clone().requires_grad_()
            if isinstance(a, torch.Tensor) and a.is_floating_point()
            and about.name not in ("target", "running_mean", "running_var",
                                   "random_samples")
            else a
            for a, about in zip(args, op._schema.arguments)]


@unittest.skipUnless(HAVE_TORCH, WHY)
class PlainCalls(unittest.TestCase):
    """Calls that need nothing of ours: PyTorch's dispatcher calls no Python for
    them, also after other calls did."""

    def setUp(self):
        torch.manual_seed(0)
        self.addCleanup(cleave.torch.unpatch)

    def use_everything(self):
        """Forward mode, and a derivative of a derivative."""
        target = torch.tensor([1, 0, 3])
        x = torch.randn(3, 4)

        def loss(v):
            return F.multi_margin_loss(v * v, target)

        jvp(loss, (x,), (x,))
        leaf = x.clone().requires_grad_()
        first, = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
        torch.autograd.grad(first.sum(), leaf)

    def python_calls(self, op, args, kwargs) -> list:
        """The Python functions that run within a call of the dispatcher."""
        seen = []

        def note(frame, event, argument):
            if event == "call":
                seen.append(frame.f_code.co_qualname)

        sys.setprofile(note)
        try:
            op._op(*args, **kwargs)
        finally:
            sys.setprofile(None)
        return seen

    def test_no_python_is_reached(self):
        counted, reached = set(), set()
        cleave.torch.unpatch()
        calls = {t.name: samples_of(t.name)[1] for t in TARGETS}
        cleave.torch.patch_aten()
        self.use_everything()
        for target in TARGETS:
            op = aten_op(target.name)
            for args, kwargs in calls[target.name][:2]:
                # PyTorch refuses a leaf that is changed in place.
                for leaf in (False,) if target.twin else (False, True):
                    if leaf:
                        args = _as_leaves(op, args)
                    with self.subTest(op=target.name, requires_grad=leaf):
                        seen = self.python_calls(op, args, kwargs)
                        if target.plain:
                            # Only those that PyTorch differentiates wrongly.
                            reached.add(target.name)
                            self.assertEqual(bool(seen), True)
                        else:
                            self.assertEqual(seen, [])
                            counted.add(target.name)
        self.assertGreater(len(counted), 45)
        self.assertEqual(len(reached), 12)

    def test_plain_backward_reaches_no_python(self):
        target = torch.tensor([1, 0, 3])
        cleave.torch.patch_aten()
        self.use_everything()
        leaf = torch.randn(3, 4).requires_grad_()
        loss = F.multi_margin_loss(leaf, target)
        seen = []

        def note(frame, event, argument):
            if event == "call":
                seen.append(frame.f_code.co_filename)

        sys.setprofile(note)
        try:
            loss.backward()
        finally:
            sys.setprofile(None)
        # The hook on backward itself, once, and no kernel.
        package = os.path.dirname(cleave.__file__)
        ours = [f for f in seen if f.startswith(package)]
        self.assertEqual(len(ours), 1)

    def test_the_key_is_given_back(self):
        cleave.torch.patch_aten()
        before = str(torch._C._dispatch_tls_local_include_set())
        self.use_everything()
        with self.assertRaises(ZeroDivisionError):
            with forward_ad.dual_level():
                raise ZeroDivisionError
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(torch.ones(2), torch.ones(2),
                                create_graph=True)
        self.assertEqual(str(torch._C._dispatch_tls_local_include_set()),
                         before)
        self.assertFalse(torch._C._is_any_autocast_enabled())


if __name__ == "__main__":
    unittest.main()
