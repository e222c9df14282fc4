"""Which ops of PyTorch's own database (OpInfo) have rules: those whose name has
one, or whose first samples call nothing below autograd but aten ops with rules,
in-place ones counted as what they replace their argument by. The others have
their reasons here.

    python -m unittest torch_rules
    python torch_rules.py --list     # what is left, what it calls, and why
"""

from __future__ import annotations

import fnmatch
import sys
import unittest
import warnings

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    import cleave
    from cleave.torch.aten_call import AtenCall

_SAMPLES = 4
# Raises an error, or copies: nothing that a rule could say.
_PLAIN = ("_linalg_check_errors", "copy_", "zero_", "fill_")
# Patterns of the names of ops; the first that matches gives the reason.
REASONS = (
    ("CUDA or XPU alone", "jiterator_* torch.ops.aten._*_attention_forward"),
    ("8-bit floats", "torch._scaled_mm*"),
    ("sparse", "sparse.* to_sparse"),
    ("a Python value, or a size that data decides",
     "item equal allclose bincount nn.functional.one_hot "
     "nn.functional.gaussian_nll_loss"),
    ("an autograd.Function of Python", "nn.functional.linear_cross_entropy.*"),
    ("the shape of an argument", "resize_ resize_as_"),
    ("draws from a generator's state; the core's ops draw by a key",
     "bernoulli cauchy exponential geometric log_normal multinomial normal* "
     "uniform rand* nn.functional.dropout* nn.functional.alpha_dropout "
     "nn.functional.feature_alpha_dropout.with_train nn.functional.rrelu "
     "nn.functional.fractional_max_pool* pca_lowrank svd_lowrank "
     "nn.functional.multi_head_attention_forward "
     "nn.functional.scaled_dot_product_attention"),
    ("elements that nobody has written: `empty` and what fills it in place",
     "empty* new_empty* signal.windows.* "
     "nn.functional.instance_norm nn.functional.hinge_embedding_loss "
     "nn.functional.cosine_embedding_loss nn.functional.pad.circular"),
)


def reason_of(name: str) -> str | None:
    for reason, patterns in REASONS:
        if any(fnmatch.fnmatch(name, p) for p in patterns.split()):
            return reason
    return None


class _Names:
    """Whether aten ops have rules."""

    def __init__(self):
        self.rules = cleave.load()
        self.known: dict[str, bool] = {}

    def has(self, op) -> bool:
        name = str(op)
        if name not in self.known:
            try:
                AtenCall(self.rules, op)
                self.known[name] = True
            except cleave.NotFoundError:
                self.known[name] = False
        return self.known[name]

    def has_packet(self, name: str) -> bool:
        packet = getattr(torch.ops.aten, name, None)
        return packet is not None and any(
            self.has(getattr(packet, overload))
            for overload in packet.overloads())

    def covers(self, op) -> bool:
        if op.namespace != "aten":
            return False
        packet = op._schema.name.partition("::")[2]
        if packet in _PLAIN or self.has(op):
            return True
        if packet.endswith("_") and not packet.endswith("__"):
            return self.has_packet(packet[:-1])
        return False


def _called(info) -> set:
    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            ops.add(op)
            return op(*args, **(kwargs or {}))

    ops: set = set()
    dtypes = info.supported_dtypes("cpu")
    dtype = torch.float64 if torch.float64 in dtypes else min(dtypes, key=str)
    for k, sample in enumerate(info.sample_inputs("cpu", dtype)):
        if k == _SAMPLES:
            break
        with Recorder():
            info.op(sample.input, *sample.args, **sample.kwargs)
    return ops


def survey() -> dict[str, list[str] | None]:
    """The ops without rules that each op of the database calls, [] if it has a
    rule or calls none such; None where it does not run here."""
    from torch.testing._internal.common_methods_invocations import op_db
    names = _Names()
    table: dict[str, list[str] | None] = {}
    for info in op_db:
        name = ".".join(filter(None, (info.name, info.variant_test_name)))
        if names.has_packet(info.aten_name):
            table[name] = []
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                called = _called(info)
        except (RuntimeError, ValueError, IndexError, AssertionError):
            table[name] = None
            continue
        table[name] = sorted(str(op) for op in called if not names.covers(op))
    return table


@unittest.skipUnless(HAVE_TORCH, WHY)
class Rules(unittest.TestCase):

    def test_what_has_no_rule_has_a_reason(self):
        table = survey()
        for name, missing in table.items():
            with self.subTest(name):
                if missing == []:
                    self.assertIsNone(reason_of(name), "it has rules now")
                else:
                    self.assertIsNotNone(reason_of(name), missing)
        left = [name for name, missing in table.items() if missing != []]
        for _, patterns in REASONS:
            for pattern in patterns.split():
                self.assertTrue(fnmatch.filter(left, pattern), pattern)
        covered = len(table) - len(left)
        print(f"{covered} of {len(table)} ops of OpInfo have rules")


def _main():
    table = survey()
    print(f"{sum(m == [] for m in table.values())} of {len(table)}")
    for name, missing in table.items():
        if missing != []:
            print(f"{name:52} {reason_of(name)}: {missing}")


if __name__ == "__main__":
    if "--list" in sys.argv:
        _main()
    else:
        unittest.main()
