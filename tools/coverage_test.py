#!/usr/bin/python3
"""Runs `cleave coverage` of the built command.

    coverage_test.py CLEAVE RULES COVERAGE

COVERAGE lists the shipped ops that have not each of vmap, jvp and vjp.
"""

import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import CommandTest  # pylint: disable=wrong-import-position

COVERAGE = os.path.abspath(sys.argv[3])


class CoverageTest(CommandTest):
    # Kept or expanded, for each op and subset of its inputs.
    def test_batching_of_ops(self):
        table = self.succeed("coverage", "--batching", "new.rules")
        self.assertRegex(table, r"(?m)^soft_argmax +x +kept +PROVED +`axis`")
        self.assertIn("of 1 subset: kept 1 (100.0 %)", table)
        report = json.loads(self.succeed(
            "coverage", "--batching", "--json", "--op", "linear,mean"))
        self.assertEqual(list(report["ops"]), ["linear", "mean"])
        rows = {",".join(row["batched"]): row
                for row in report["ops"]["linear"]["subsets"]}
        self.assertEqual(len(rows), 7)
        self.assertEqual(rows["x"]["answer"], "kept")
        self.assertEqual(rows["x"]["verdict"], "PROVED")
        self.assertEqual(rows["x,w"]["answer"], "expanded")
        self.assertIn("argument `w` has 3 axes", rows["x,w"]["why"])
        self.assertNotIn("verdict", rows["x,w"])
        mean = report["ops"]["mean"]
        self.assertEqual(mean["subsets"][0]["verdict"], "EXHAUSTIVE(2)")
        self.assertIn("`axes`", mean["no_rank_bound"])
        self.assertEqual(sum(report["subsets"].values()),
                         7 + len(mean["subsets"]))
        self.fail_with("no op matches `nothing*`", "coverage", "--ops",
                       "nothing*")

    # No op appears in this list by falling back silently.
    def test_numerics_of_f32(self):
        numerics = json.loads(
            self.succeed("coverage", "--numerics", "--json"))["primitives"]
        for name in ("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf",
                     "erfc", "sin", "cos", "pow", "rsqrt"):
            self.assertRegex(numerics[name], "^numeric, within [0-9.]+ ulp$")
        self.assertEqual(numerics["tan"], "C library")
        self.assertNotIn("add", numerics)
        self.assertRegex(self.succeed("coverage", "--numerics"),
                         r"(?m)^exp +numeric, within 1 ulp$")

    # Each primitive runs somewhere, and what is not a kernel says why.
    def test_kernels_of_primitives(self):
        primitives = json.loads(
            self.succeed("coverage", "--kernels", "--json"))["primitives"]
        for devices in primitives.values():
            self.assertEqual(list(devices), ["cpu", "opencl", "cuda"])
            for how in devices.values():
                self.assertRegex(how, "^kernel|^(reference kernel|cpu): .")
        self.assertEqual(primitives["exp"]["opencl"], "kernel")
        self.assertEqual(primitives["sort"]["cpu"], "kernel: the runtime's own")
        self.assertRegex(primitives["sort"]["cuda"], "^cpu: ")
        self.assertEqual(primitives["scan"]["cpu"], "kernels of its regions")
        self.assertRegex(primitives["nonzero"]["cpu"], "^reference kernel: ")
        self.assertEqual(primitives["random_uniform"]["cpu"], "kernel")
        self.assertRegex(primitives["random_split"]["cpu"],
                         "^reference kernel: ")
        self.assertRegex(primitives["scatter"]["cuda"], "^cpu: a structured")
        self.assertRegex(self.succeed("coverage", "--kernels"),
                         r"(?m)^scatter +kernel; opencl: cpu: ")

    # Every shipped op has an answer. The ops that have not each of vmap, jvp
    # and vjp are listed; a new line there is to be read, not copied.
    def test_shipped_ops_are_covered(self):
        ops = json.loads(self.succeed("coverage", "--json"))["ops"]
        self.assertGreater(len(ops), 300)
        answer = re.compile(r"derived|given \(\S+\.rules:\d+\)"
                            "|(impossible|not supported): .+")
        listed = []
        for op, transforms in sorted(ops.items()):
            for transform, how in transforms.items():
                self.assertTrue(answer.fullmatch(how), (op, transform, how))
            # Where one is given moves with the lines of its file.
            all_three = [re.sub(r"^given \(.*", "given", transforms[t])
                         for t in ("vmap", "jvp", "vjp")]
            if not set(all_three) <= {"derived", "given"}:
                # A place in a rule file moves with its lines.
                line = " | ".join((op, *all_three))
                listed.append(
                    re.sub(r"\S*/(\w+\.rules):\d+:\d+", r"(\1", line) + "\n")
        with open(COVERAGE, encoding="utf-8") as file:
            self.assertEqual(listed, file.readlines())
        self.assertEqual(ops["relu"]["jvp"], "derived")
        self.assertRegex(ops["logsumexp"]["jvp"],
                         r"^given \(.*rules/core/\w+\.rules:\d+\)$")
        self.assertEqual(ops["logsumexp"]["vjp"], "derived")
        self.assertRegex(ops["convolution"]["vmap"], r"^given \(")
        self.assertEqual(ops["einsum"]["vmap"], "derived")
        self.assertEqual(ops["aten.index.Tensor"]["jvp"], "derived")
        self.assertEqual(ops["onnx.ConvTranspose"]["jvp"], "derived")

    # The answer for each transform of another is known as well. A pair that is
    # impossible is so for a reason of the closed list.
    def test_pairs_of_transforms_are_covered(self):
        ops = json.loads(self.succeed("coverage", "--pairs", "--json"))["ops"]
        self.assertGreater(len(ops), 300)
        names = {f"{outer} of {inner}" for outer in ("vmap", "jvp", "vjp")
                 for inner in ("vmap", "jvp", "vjp")}
        answer = re.compile(
            "derived|impossible: (discrete|ragged|no closed form known"
            "|unbounded loop in reverse).*")
        refused = set()
        for op, pairs in ops.items():
            self.assertEqual(set(pairs), names, op)
            for how in pairs.values():
                if not answer.fullmatch(how):
                    refused.add(f"{op}: {how}")
        self.assertEqual(refused, set())
        self.assertEqual(set(ops["layer_norm"].values()), {"derived"})
        self.assertRegex(self.succeed("coverage", "--pairs", "--op", "relu"),
                         r"(?m)^pairs of 1 ops: 9 derived$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
