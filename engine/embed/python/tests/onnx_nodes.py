"""ONNX's own tests of its ops: each one that can be imported gives what ONNX
says it gives.

    python -m unittest onnx_nodes
    CLEAVE_ONNX_NODES='^test_conv' python -m unittest onnx_nodes

Shapes and other inputs that must be known before anything runs are given by
`values` where a model does not have them as constants. Cases that are not
imported are counted by op, and the number that passes must not sink.
"""

from __future__ import annotations

import collections
import os
import re
import unittest
import warnings

import numpy as np

from onnx_testing import HAVE_ONNX, WHY_ONNX, assert_close

if HAVE_ONNX:
    import onnx
    from onnx import numpy_helper

    from cleave import UnimplementedError
    from cleave.onnx import import_onnx

# With onnx 1.23, whose package has 1884 tests.
LEAST_PASSED = 1420


def _array(value):
    return (numpy_helper.to_array(value)
            if isinstance(value, onnx.TensorProto) else value)


def _import(model, feeds):
    """The model, and the inputs that were fixed; UnimplementedError."""
    try:
        return import_onnx(model), {}
    except UnimplementedError as error:
        first = next(iter(feeds), None)
        values = {
            name: value for name, value in feeds.items()
            if name != first and isinstance(value, (np.ndarray, np.generic))
            and value.ndim <= 1 and (value.dtype.kind in "iub"
                                     or value.size <= 8)}
        if not values:
            raise error
        return import_onnx(model, values=values), values


@unittest.skipUnless(HAVE_ONNX, WHY_ONNX + " (1 test of 1884 cases)")
class Nodes(unittest.TestCase):

    def test_all(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from onnx.backend.test.loader import load_model_tests
            cases = load_model_tests(kind="node")
        pattern = os.environ.get("CLEAVE_ONNX_NODES", "")
        count = int(os.environ.get("TEST_TOTAL_SHARDS", 1))
        shard = int(os.environ.get("TEST_SHARD_INDEX", 0))
        cases = [c for c in cases[shard::count] if re.search(pattern, c.name)]
        counts = collections.Counter()
        lacking = collections.Counter()
        for case in cases:
            for inputs, outputs in case.data_sets:
                with self.subTest(case.name):
                    counts[self._run(case, inputs, outputs, lacking)] += 1
        total = sum(counts.values())
        print(f"{total} cases: {counts['passed']} passed, "
              f"{counts['values']} passed with values for inputs that must be "
              f"known, {counts['lacking']} not imported: "
              + ", ".join(f"{op} {n}" for op, n in sorted(lacking.items())))
        if not pattern and count == 1 and onnx.__version__.startswith("1.23."):
            self.assertGreaterEqual(counts["passed"] + counts["values"],
                                    LEAST_PASSED)

    def _run(self, case, inputs, outputs, lacking) -> str:
        names = [i.name for i in case.model.graph.input]
        feeds = dict(zip(names, (_array(v) for v in inputs)))
        try:
            model, values = _import(case.model, feeds)
        except UnimplementedError:
            lacking[case.model.graph.node[0].op_type] += 1
            return "lacking"
        results = model(*[v for n, v in feeds.items() if n not in values])
        results = results if isinstance(results, tuple) else (results,)
        self.assertEqual(len(results), len(outputs))
        for got, want in zip(results, outputs):
            assert_close(got, _array(want), case.rtol, case.atol, case.name)
        return "values" if values else "passed"


if __name__ == "__main__":
    unittest.main()
