"""PyTorch's decompositions and derivatives against our rules, and the table of
what is off in testing/README.md.

    python -m unittest torch_audit

The whole audit takes half an hour: it runs where CLEAVE_UPDATE is set, which has the
table written. Else the ops of `_SOME` are compared with what the table says.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import unittest

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch

    import cleave
    from audit_page import AuditPage
    from cleave.auditing import AGREES, OFF
    from cleave.torch import audit as torch_audit
    from cleave.torch.audit_process import Crash, run_apart
    from cleave.torch.check import aten_op
    from cleave.torch.check_all import select

_SOME = ["gelu", "silu", "atan", "asinh", "softplus", "hypot"]
# The dtypes, the subjects and the calls per op of the table.
_DTYPES = ["f32"]
_OF = ["decomposition", "vjp"]
_CALLS = 1


@unittest.skipUnless(HAVE_TORCH, WHY)
class Audit(unittest.TestCase):

    def test_table(self):
        update = bool(os.environ.get("CLEAVE_UPDATE"))
        audit = torch_audit.audit_ops(None if update else _SOME, _DTYPES, _OF,
                                      calls=_CALLS)
        compared = {r.op for r in audit.rows if r.verdict in (AGREES, OFF)}
        self.assertGreaterEqual(len(compared), 140 if update else len(_SOME))
        AuditPage("torch").check(self, audit, part=not update)

    def test_a_decomposition_that_is_wrong(self):
        # A slope that is a thousandth too steep.
        rules = cleave.load()
        op = torch.ops.aten.silu.default
        table = torch._decomp.decomposition_table
        before = table[op]
        table[op] = lambda x: x * torch.special.expit(1.001 * x)
        try:
            wrong = torch_audit.audit_ops("silu", ["f32"], ["decomposition"],
                                          rules=rules, calls=1)
        finally:
            table[op] = before
        self.assertEqual([r.verdict for r in wrong.rows], [OFF])
        finding = wrong.rows[0].findings[-1]
        self.assertEqual(finding.kind, "inaccurate")
        self.assertGreater(finding.ulp, 1000)

    def test_bfloat16(self):
        audit = torch_audit.audit_ops("relu", ["bf16"], ["decomposition"],
                                      calls=1)
        self.assertEqual([r.verdict for r in audit.rows], [AGREES])
        self.assertGreater(audit.rows[0].samples, 60000)  # all values

    def test_a_kernel_that_ends_the_process(self):
        op = torch.ops.aten.silu.default
        table = torch._decomp.decomposition_table
        before = table[op]

        def ends(x):
            if x.numel() == 7:
                os.kill(os.getpid(), signal.SIGSEGV)
            return torch.nn.functional.silu(x.double()).to(x.dtype)

        table[op] = ends
        try:
            audit = torch_audit.audit_ops("silu", ["f32"], ["decomposition"],
                                          calls=1)
        finally:
            table[op] = before
        row, = audit.rows
        self.assertEqual(row.verdict, OFF)
        crash = row.findings[0]
        self.assertEqual((crash.kind, crash.got), ("crash", "SIGSEGV"))
        self.assertTrue(crash.inputs.startswith("float32[7]"), crash)
        # Inputs that do not end the process were compared.
        self.assertGreater(row.samples, 10000)

    def test_processes(self):
        def work(task, skip, note, refused):
            for k in range(skip, 3):
                note(f"{task}{k}")
                if task == "b" and k == 1 and not refused:
                    os.kill(os.getpid(), signal.SIGSEGV)
                yield k

        found = list(run_apart(["a", "b"], work, jobs=2, seconds=60))
        self.assertEqual([m for t, m in found if t == "a"], [0, 1, 2, None])
        self.assertEqual(
            [m for t, m in found if t == "b"],
            [0, Crash("SIGSEGV", 1, "b1"), 1, 2, None])

    def test_command(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = torch_audit.main(["--op", "relu", "--dtype", "f32",
                                       "--of", "kernel", "--calls", "1"])
        self.assertEqual(status, 0)
        self.assertIn("agrees", printed.getvalue())
        with self.assertRaises(SystemExit), \
                contextlib.redirect_stderr(io.StringIO()):
            torch_audit.main(["--op", "no_such_op"])

    def test_selection(self):
        skipped: dict[str, str] = {}
        chosen = select(cleave.load(), ["gel*", "native_dropout"], skipped)
        self.assertEqual(set(chosen), {"aten.gelu", "aten.gelu_backward"})
        self.assertIs(chosen["aten.gelu"], aten_op("gelu"))


if __name__ == "__main__":
    unittest.main()
