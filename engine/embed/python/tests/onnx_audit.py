"""The function bodies that ONNX ships, against our rules, and the table of what
is off in testing/README.md.

    python -m unittest onnx_audit
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import unittest

from onnx_testing import HAVE_ONNX, WHY_ONNX

if HAVE_ONNX:
    import numpy as np
    import onnx

    import cleave
    from audit_page import AuditPage
    from cleave.auditing import AGREES, OFF, Comparison, judge
    from cleave.onnx import audit as onnx_audit


@unittest.skipUnless(HAVE_ONNX, WHY_ONNX + " (5 tests)")
class Audit(unittest.TestCase):

    def test_all_bodies(self):
        audit = onnx_audit.audit_functions()
        compared = {r.op for r in audit.rows if r.verdict in (AGREES, OFF)}
        if onnx.__version__.startswith("1.23."):
            self.assertGreaterEqual(len(compared), 35)
        AuditPage("onnx").check(self, audit)

    def test_softplus_is_off_and_relu_is_not(self):
        audit = onnx_audit.audit_functions(["Softplus", "Relu"], ["f32"])
        rows = {r.op: r for r in audit.rows}
        self.assertEqual(rows["Relu"].verdict, AGREES)
        self.assertGreater(rows["Relu"].samples, 10000)
        self.assertEqual(rows["Softplus"].verdict, OFF)
        overflow, lost = rows["Softplus"].findings
        self.assertEqual((overflow.kind, overflow.got), ("not finite", "inf"))
        self.assertEqual(lost.kind, "inaccurate")
        self.assertGreater(lost.ulp, 1e7)
        # The body of opset 1 is that of 22: one line of the table.
        self.assertEqual(audit.markdown().count("`Softplus`"), 1)

    def test_tensors_of_bodies_are_constants(self):
        audit = onnx_audit.audit_functions("CausalConvWithState", ["f32"])
        self.assertEqual([r.verdict for r in audit.rows], [OFF])
        self.assertEqual({f.kind for f in audit.rows[0].findings},
                         {"not finite"})

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "audit.json")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                status = onnx_audit.main(["--op", "Soft[ps]*", "--dtype", "f16",
                                          "--markdown", "--json", path])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        self.assertEqual(status, 0)  # off, and explained
        self.assertIn("| `Softplus` |", printed.getvalue())
        self.assertEqual({r["op"] for r in found["rows"]},
                         {"Softplus", "Softsign"})
        causes = [f["cause"] for r in found["rows"] for f in r["findings"]]
        self.assertTrue(all(causes))
        with self.assertRaises(SystemExit), \
                contextlib.redirect_stderr(io.StringIO()):
            onnx_audit.main(["--op", "NoSuchOp"])

    def test_inputs_that_are_not_read(self):
        # The derivative of a sum has no use for where it is taken.
        rules = cleave.load()
        graph = rules.call_graph("aten.add.Tensor", ["f32[n]", "f32[n]"])
        pulled = graph.vjp()
        builder = rules.builder()
        values = [builder.input(n, k) for n, k in pulled.inputs]
        results = builder.inline(pulled, values)
        ours = builder.finish({"dx": results[1]})
        right, wrong = judge([
            Comparison(ours, lambda x, y, dy: dy),
            Comparison(ours, lambda x, y, dy: dy + np.float32(1) * x)])
        self.assertEqual(right["verdict"], "agrees")
        self.assertEqual(wrong["verdict"], "disagrees")


if __name__ == "__main__":
    unittest.main()
