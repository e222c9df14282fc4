#!/usr/bin/python3
"""Runs the built command: a new op in one file.

    cleave_test.py CLEAVE RULES
"""

import json
import math
import re
import struct
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    SOFT_ARGMAX,
    CommandTest,
    read_safetensors,
    write_safetensors,
)


def soft_argmax(x, beta):
    top = max(x)
    weights = [math.exp(beta * (v - top)) for v in x]
    mean = math.fsum(i * w for i, w in enumerate(weights)) / math.fsum(weights)
    return mean, weights


def soft_argmax_tangent(x, dx, beta):
    mean, weights = soft_argmax(x, beta)
    total = math.fsum(weights)
    return math.fsum(
        beta * w * (i - mean) * d for i, (w, d) in enumerate(zip(weights, dx))
    ) / total


class CleaveTest(CommandTest):
    def test_new_op_is_checked(self):
        report = self.path("report.json")
        # The test's own limit comes before that of the op.
        out = self.succeed("check", "new.rules", "--json", report,
                           "--seconds", "3600")
        self.assertIn("soft_argmax", out)
        with open(report, encoding="utf-8") as file:
            layers = json.load(file)["ops"]["soft_argmax"]["layers"]
        for layer in ("L0", "L1", "L2", "L3", "L4", "L5", "examples"):
            self.assertEqual(layers[layer]["verdict"], "agrees", layer)

    def test_kernels_of_a_new_op_are_checked(self):
        report = self.path("report.json")
        self.succeed("check", "new.rules", "--kernels", "--layers", "L4",
                     "--dtype", "f32", "--json", report, "--seconds", "3600")
        with open(report, encoding="utf-8") as file:
            layers = json.load(file)["ops"]["soft_argmax"]["layers"]
        self.assertEqual(list(layers), ["L4", "L6"])
        self.assertEqual(layers["L6"]["verdict"], "agrees")

    def test_dtypes_that_an_op_does_not_take_are_not_checked(self):
        report = self.path("report.json")
        self.succeed("check", "new.rules", "--dtype", "i32", "--json", report)
        with open(report, encoding="utf-8") as file:
            layers = json.load(file)["ops"]["soft_argmax"]["layers"]
        self.assertEqual(layers["L3"]["verdict"], "not checked")
        self.assertEqual(layers["L3"]["why"], "it takes none of these dtypes")

    def test_a_function_is_debugged(self):
        self.write("f.rules", "language 1\n\n"
                   "fn f(x: f64[n]) -> f64[n] = (1 - cos(x)) / (x * x)\n")
        debug = ("debug", "f.rules", "--fn", "f")
        right = self.succeed(*debug, "--at", "x=[1, 0x1p+1]")
        self.assertIn("no node is off: each output is within 8 ulp", right)
        write_safetensors(self.path("x"), {"x": ([2], [1, 1e-6]),
                                           "x.tangent": ([2], [1, 1])})
        result = self.run_cleave(*debug, "--input", "x", "--jvp", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual([output["name"] for output in report["outputs"]],
                         ["y", "y.tangent"])
        for output in report["outputs"]:
            cause = output["cause"]
            self.assertEqual(cause["finding"], "cancellation")
            self.assertEqual(cause["first"]["element"], [1])
        self.assertFalse(report["differs"])
        # A value of the line comes before that of the file.
        right = self.succeed(*debug, "--input", "x", "--at", "x=[1, 2]",
                             "--jvp", "--of", "y.tangent", "--element", "1")
        self.assertIn("y.tangent[1] is within", right)

    def test_new_op_is_refuted_where_it_is_wrong(self):
        self.write("new.rules", SOFT_ARGMAX.replace(
            "sum[i](i * p[", "sum[i]((i + 1) * p["))
        result = self.run_cleave("check", "new.rules")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("disagrees", result.stdout)

    def test_new_op_is_transformed_and_run(self):
        self.assertIn(
            "graph (%x: f64[batch, n])",
            self.succeed("vmap", "new.rules", "--fn", "pick", "--in-axes", "0"),
        )
        self.assertIn(
            "%x.tangent",
            self.succeed("jvp", "new.rules", "--fn", "pick"),
        )
        self.assertIn(
            "x.cotangent = %",
            self.succeed("vjp", "new.rules", "--fn", "pick"),
        )
        x = [0.5, -1.25, 3.0, 2.5]
        dx = [1.0, 0.25, -2.0, 0.125]
        rows = [x, [-40.0, 800.0, 801.0, 0.0], [0.0] * 4]
        want = [soft_argmax(row, 2)[0] for row in rows]
        run = ("run", "new.rules", "--fn", "pick", "--output", "out")

        write_safetensors(self.path("x"), {"x": ([4], x)})
        self.assertEqual(
            self.succeed(*run, "--input", "x"), "y: f64[]\n")
        shape, numbers = read_safetensors(self.path("out"))["y"]
        self.assertEqual(shape, [])
        self.assert_close(numbers, want[:1])

        flat = [v for row in rows for v in row]
        write_safetensors(self.path("xs"), {"x": ([3, 4], flat)})
        self.succeed(*run, "--input", "xs", "--vmap", "0")
        shape, numbers = read_safetensors(self.path("out"))["y"]
        self.assertEqual(shape, [3])
        self.assert_close(numbers, want)

        write_safetensors(
            self.path("xd"), {"x": ([4], x), "x.tangent": ([4], dx)})
        self.succeed(*run, "--input", "xd", "--jvp")
        tensors = read_safetensors(self.path("out"))
        self.assert_close(tensors["y"][1], want[:1])
        self.assert_close(
            tensors["y.tangent"][1], [soft_argmax_tangent(x, dx, 2)])

        write_safetensors(
            self.path("xsd"),
            {"x": ([3, 4], flat), "x.tangent": ([3, 4], dx * 3)})
        self.succeed(*run, "--input", "xsd", "--jvp", "--vmap", "0")
        tensors = read_safetensors(self.path("out"))
        self.assert_close(
            tensors["y.tangent"][1],
            [soft_argmax_tangent(row, dx, 2) for row in rows])

        # The gradient is the slope along each element.
        units = [[float(i == k) for i in range(4)] for k in range(4)]
        write_safetensors(
            self.path("xc"),
            {"x": ([3, 4], flat), "y.cotangent": ([3], [1.0, 1.0, 2.0])})
        self.succeed(*run, "--input", "xc", "--vjp", "--vmap", "0")
        tensors = read_safetensors(self.path("out"))
        self.assert_close(tensors["y"][1], want)
        self.assert_close(
            tensors["x.cotangent"][1],
            [scale * soft_argmax_tangent(row, unit, 2)
             for row, scale in zip(rows, (1.0, 1.0, 2.0)) for unit in units])
        self.fail_with("--jvp", *run, "--input", "xc", "--vjp", "--jvp")

    # Softmaxes over other axes need kernels of their own; what each of them
    # needs around it is inside.
    def test_fusion_is_explained(self):
        self.write("fuse.rules", "language 1\n\n"
                   "fn twice(x: f32[m, n]) -> (y: f32[m, n]) =\n"
                   "  softmax(x, axis: 1) + softmax(x, axis: 0)\n")
        explain = ("explain", "fuse.rules", "--fn", "twice")
        out = self.succeed(*explain, "--fusion")
        kernels = re.findall(r"(?m)^kernel (\d), (\w+): \((.*)\) -> ", out)
        self.assertEqual([k[:2] for k in kernels],
                         [("0", "reduction"), ("1", "reduction")])
        self.assertEqual(kernels[0][2], "%x")
        self.assertIn("of kernel 0: its reader is reduced over other axes", out)
        # Each primitive is in a kernel, by the name that it has in the graph.
        nodes = re.compile(r"(?m)^  (%\d+: .*?)\(")
        self.assertEqual(nodes.findall(out),
                         nodes.findall(self.succeed(*explain)))
        batched = self.succeed(*explain, "--fusion", "--vmap", "0", "--jvp")
        self.assertIn("(%x, %x.tangent", batched)
        self.assertIn("f32[batch, m, n]", batched)
        self.fail_with("axes", *explain, "--fusion", "--vmap", "0,0")

    # In files a key is a U64.
    def test_keys_are_run(self):
        self.write("keys.rules", "language 1\n\n"
                   "fn f(k: key) -> (next: key[2], u: f64[3]) = (\n"
                   "  next = random_split(k, count: 2),\n"
                   "  u = random_uniform(k, shape: [3], dtype: f64))\n")
        header = b'{"k":{"dtype":"U64","shape":[],"data_offsets":[0,8]}}'
        self.write("k", struct.pack("<Q", len(header)) + header + b"\7" * 8)
        out = self.succeed("run", "keys.rules", "--fn", "f", "--input", "k",
                           "--output", "out")
        self.assertEqual(out, "next: u64[2]\nu: f64[3]\n")

    def test_keys_are_split(self):
        self.write("drop.rules", "language 1\n\n"
                   "fn f(x: f32[n], k: key) -> f32[n] = dropout(x, k)\n")
        vmap = ("vmap", "drop.rules", "--fn", "f", "--in-axes")
        self.assertIn("key[batch] = random_split(%k, count: batch)",
                      self.succeed(*vmap, "0,split"))
        self.assertNotIn("random_split", self.succeed(*vmap, "0,none"))
        self.fail_with("`x` is f32[n]", *vmap, "split,none")

    def test_new_op_is_covered_and_documented(self):
        coverage = json.loads(self.succeed("coverage", "new.rules", "--json"))
        self.assertEqual(list(coverage["ops"]), ["soft_argmax"])
        transforms = coverage["ops"]["soft_argmax"]
        self.assertEqual(transforms["vmap"], "derived")
        self.assertEqual(transforms["jvp"], "derived")
        self.assertEqual(transforms["vjp"], "derived")
        doc = self.succeed("doc", "soft_argmax", "--rules", "new.rules")
        self.assertIn("## soft_argmax", doc)
        self.assertIn("softened", doc)

    def test_shipped_ops_are_overridden(self):
        self.write("mine.rules", """\
language 1

/// One quotient.
override softsign
{
  let r = 1 + abs(x)
  jvp x (t) = t / r / r
}

fn f(x: f32[3]) -> f32[3] = softsign(x)
""")
        report = self.succeed("check", "mine.rules")
        self.assertRegex(report, r"(?m)^softsign +agrees")
        self.assertIn("checked 1 rules", report)
        self.assertRegex(self.succeed("coverage", "mine.rules"),
                         r"(?m)^softsign +derived +given \(mine.rules:7\) +")
        self.assertRegex(self.succeed("coverage", "--op", "softsign"),
                         r"given \(.*activation.rules:\d+\)")
        self.assertIn("abs(", self.succeed("derive", "softsign", "jvp",
                                           "mine.rules"))
        self.assertIn("mine.rules:7", self.succeed(
            "explain", "mine.rules", "--fn", "f", "--jvp"))
        doc = self.succeed("doc", "softsign", "--rules", "mine.rules")
        self.assertIn("Overridden in mine.rules:\n\nOne quotient.", doc)
        self.assertIn("jvp x (t) = t / r / r", doc)
        self.write("wrong.rules", """\
language 1

override softsign { jvp x = 2 * dx }
""")
        wrong = self.run_cleave("check", "wrong.rules")
        self.assertEqual(wrong.returncode, 1, wrong.stdout)
        self.assertIn("softsign L5 disagrees", wrong.stdout)

    # Loops save less where they compute again.
    def test_loops_are_recomputed(self):
        self.write("loop.rules", """language 1

fn walk(xs: f64[L], h: f64[]) -> f64[]
{
  let r = scan(h = h) over x in xs { (h = tanh(h * x) * sin(h)) }
  r.h
}
""")
        saving = self.succeed("vjp", "loop.rules", "--fn", "walk")
        recomputing = self.succeed("vjp", "loop.rules", "--fn", "walk",
                                   "--recompute-loops")
        forward = r"(?m)^  %1: ([^=]*) = scan"
        saved = [len(re.search(forward, text).group(1).split("], "))
                 for text in (saving, recomputing)]
        self.assertEqual(saved[1], 2)
        self.assertGreater(saved[0], 2)
        self.fail_with("--vjp", "explain", "loop.rules", "--fn", "walk",
                       "--recompute-loops")

    # Derived rules are rules: canonical, and checked against what they are
    # derived from. A wrong one is refuted.
    def test_rewrites_are_applied_and_checked(self):
        self.write("simple.rules", """language 1

rewrite double_sine: sin(x) + sin(x) => sin(x)

rewrite tangent: sin(x) / cos(x) => tan(x) real

fn f(x: f64[n]) -> f64[n] = 1 * sin(x) / cos(-(-x))
""")
        exact = self.succeed("expand", "simple.rules", "--fn", "f")
        for name, count in (("mul", 0), ("neg", 0), ("div", 1), ("tan", 0)):
            self.assertEqual(exact.count(f"= {name}("), count, exact)
        self.assertIn(
            "tan(%x)  // rewrite tangent, simple.rules:5",
            self.succeed("explain", "simple.rules", "--fn", "f", "--approx"))
        x = [0.5, -1.25, 3.0]
        write_safetensors(self.path("x"), {"x": ([3], x)})
        run = ("run", "simple.rules", "--fn", "f", "--input", "x", "--output",
               "out")
        self.succeed(*run)
        self.assert_close(read_safetensors(self.path("out"))["y"][1],
                          [math.sin(v) / math.cos(v) for v in x])
        self.succeed(*run, "--approx")
        self.assert_close(read_safetensors(self.path("out"))["y"][1],
                          [math.tan(v) for v in x])
        result = self.run_cleave("check", "simple.rules")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("rewrite double_sine L3 disagrees", result.stdout)
        self.assertNotIn("rewrite tangent L2 disagrees", result.stdout)
        self.assertIn("checked 2 rules, seed 1: 1 disagree", result.stdout)
        self.write("simple.rules", "language 1\n\nrewrite r: x + 0 => x\n")
        self.assertIn("x = -0 (-0x0p+0)",
                      self.run_cleave("check", "simple.rules").stdout)

    def test_rules_are_derived(self):
        calls = [("soft_argmax", transform, "new.rules")
                 for transform in ("jvp", "vjp", "vmap")]
        calls += [("pick", "vjp", "new.rules"),
                  ("layer_norm", "vjp", "--wrt", "x,w"),
                  ("linear", "vmap", "--in-axes", "0,none,none"),
                  ("aten.max_pool2d", "vjp"), ("clip_norm", "vjp")]
        for call in calls:
            text = self.succeed("derive", *call)
            self.write("derived.rules", text)
            self.succeed("fmt", "--check", "derived.rules")
            paths = ["derived.rules"] + [p for p in call if p == "new.rules"]
            report = self.succeed("check", *paths, "--op", "*_with_*",
                                  "--layers", "L0", "L5")
            self.assertIn("checked 1 rules", report, call)
            self.assertIn("0 disagree, 0 inconclusive", report, call)
        self.write("derived.rules",
                   self.succeed("derive", "softmax", "jvp").replace(
                       "dx * ", "2 * dx * "))
        wrong = self.run_cleave("check", "derived.rules", "--op", "*_with_*")
        self.assertEqual(wrong.returncode, 1, wrong.stdout)
        self.assertIn("L5 disagrees", wrong.stdout)

    def test_rules_that_are_not_derived(self):
        self.fail_with("did you mean `softmax`?", "derive", "softmaks", "jvp")
        self.fail_with("jvp", "derive", "softmax", "grad")
        self.fail_with("impossible: discrete", "derive", "aten.any", "jvp")
        self.fail_with("--in-axes is for vmap", "derive", "softmax", "jvp",
                       "--in-axes", "0")
        self.fail_with("--wrt is for jvp and vjp", "derive", "softmax", "vmap",
                       "--wrt", "x")
        self.fail_with("batch in front", "derive", "softmax", "vmap",
                       "--in-axes", "1")
        self.fail_with("`z`", "derive", "softmax", "jvp", "--wrt", "z")
        self.fail_with("at run time only", "derive", "unique", "vmap")

    def test_text_and_json_are_twins(self):
        self.assertEqual(self.succeed("fmt", "new.rules"), SOFT_ARGMAX)
        self.write("new.json", self.succeed("convert", "new.rules"))
        self.assertEqual(self.succeed("convert", "new.json"), SOFT_ARGMAX)
        self.assertEqual(
            self.succeed("expand", "new.json", "--fn", "pick"),
            self.succeed("expand", "new.rules", "--fn", "pick"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
