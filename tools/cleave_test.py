#!/usr/bin/python3
"""Runs the built command: a new op in one file, and how each verb fails.

    cleave_test.py CLEAVE RULES COVERAGE

COVERAGE lists the shipped ops that have not each of vmap, jvp and vjp.
"""

import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

CLEAVE, RULES, COVERAGE = (os.path.abspath(path) for path in sys.argv[1:4])

# The new op of README.md.
SOFT_ARGMAX = """\
language 1

/// The index of the largest element, softened: the mean index under softmax(beta x).
op soft_argmax(x: T[A.., n@axis, B..], *, axis: axis(x) = -1, beta: real = 1) -> T[A.., B..]
  where T: float
  compute acc
  error shape "an axis of extent 0 has no index" if n == 0
  spec y[a.., b..] = sum[i](i * exp(beta * x[a.., i, b..])) / sum[i](exp(beta * x[a.., i, b..]))
  accuracy T within 2 ulp + 3 cond
{
  let p = softmax(beta * x, axis: axis)
  y[a.., b..] = sum[i](i * p[a.., i, b..])
}

example soft_argmax([0.0, 0.0, 0.0]) ~ 1.0

fn pick(x: f64[n]) -> f64[] = soft_argmax(x, beta: 2)
"""


def write_safetensors(path, tensors):
    """tensors: name -> (shape, numbers), all f64."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}d", *numbers)
        header[name] = {
            "dtype": "F64",
            "shape": shape,
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F64", entry
        begin, end = entry["data_offsets"]
        numbers = struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])
        tensors[name] = (entry["shape"], list(numbers))
    return tensors


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


class CleaveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.write("new.rules", SOFT_ARGMAX)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(content)

    def run_cleave(self, *arguments, rules=RULES):
        environment = {**os.environ, "CLEAVE_RULES": rules,
                       "CLEAVE_CACHE": ""}
        if rules is None:
            del environment["CLEAVE_RULES"]
        return subprocess.run(
            [CLEAVE, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=0.8 * float(os.environ.get("TEST_TIMEOUT", "300")),
            check=False,
        )

    def succeed(self, *arguments):
        result = self.run_cleave(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return result.stdout

    def fail_with(self, message, *arguments, rules=RULES):
        """Exits with 2, says why on stderr, and prints no data."""
        result = self.run_cleave(*arguments, rules=rules)
        what = f"{arguments}: {result.stdout}{result.stderr}"
        self.assertEqual(result.returncode, 2, what)
        self.assertEqual(result.stdout, "", what)
        self.assertIn(message, result.stderr, what)

    def assert_close(self, got, want):
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, delta=1e-14 * max(1, abs(b)))

    # A new op in one file.

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
        self.assertRegex(primitives["sort"]["cpu"], "^reference kernel: ")
        self.assertRegex(primitives["scatter"]["cuda"], "^cpu: a structured")
        self.assertRegex(self.succeed("coverage", "--kernels"),
                         r"(?m)^scatter +kernel; opencl: cpu: ")

    # Every shipped op has an answer. Those that have not each of vmap, jvp and
    # vjp are listed; a new line there is to be read, not copied.
    def test_shipped_ops_are_covered(self):
        ops = json.loads(self.succeed("coverage", "--json"))["ops"]
        self.assertGreater(len(ops), 300)
        answer = re.compile("derived|given|(impossible|not supported): .+")
        listed = []
        for op, transforms in sorted(ops.items()):
            for transform, how in transforms.items():
                self.assertTrue(answer.fullmatch(how), (op, transform, how))
            all_three = [transforms[t] for t in ("vmap", "jvp", "vjp")]
            if not set(all_three) <= {"derived", "given"}:
                # A place in a rule file moves with its lines.
                line = " | ".join((op, *all_three))
                listed.append(
                    re.sub(r"\S*/(\w+\.rules):\d+:\d+", r"(\1", line) + "\n")
        with open(COVERAGE, encoding="utf-8") as file:
            self.assertEqual(listed, file.readlines())
        self.assertEqual(ops["relu"]["jvp"], "derived")
        self.assertEqual(ops["logsumexp"]["jvp"], "given")
        self.assertEqual(ops["logsumexp"]["vjp"], "derived")
        self.assertEqual(ops["convolution"]["vmap"], "given")
        self.assertEqual(ops["einsum"]["vmap"], "derived")
        self.assertEqual(ops["aten.index.Tensor"]["jvp"], "derived")
        self.assertEqual(ops["onnx.ConvTranspose"]["jvp"], "derived")

    # What each transform of another gives is known as well. What is impossible
    # is so for a reason of the closed list.
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

    def test_text_and_json_are_twins(self):
        self.assertEqual(self.succeed("fmt", "new.rules"), SOFT_ARGMAX)
        self.write("new.json", self.succeed("convert", "new.rules"))
        self.assertEqual(self.succeed("convert", "new.json"), SOFT_ARGMAX)
        self.assertEqual(
            self.succeed("expand", "new.json", "--fn", "pick"),
            self.succeed("expand", "new.rules", "--fn", "pick"))

    # Exit statuses.

    def test_verdicts_against_exit_with_1(self):
        self.write("wide.rules", SOFT_ARGMAX.replace("beta x)", "beta  x)")
                   .replace("  where T", "      where T"))
        result = self.run_cleave("fmt", "--check", "wide.rules")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout, "wide.rules\n")
        self.succeed("fmt", "-i", "wide.rules")
        self.succeed("fmt", "--check", "wide.rules")

    def test_usage(self):
        self.fail_with("subcommand")
        self.fail_with("", "fly")
        verbs = ["check", "fmt", "convert", "expand", "explain", "vmap", "jvp",
                 "vjp", "derive", "run", "compile", "coverage",
                 "conformance", "doc"]
        for verb in verbs:
            self.assertIn("Usage", self.succeed(verb, "--help"))
            self.fail_with("--help", verb, "--unknown")
        self.fail_with("--unknown", "coverage", "--unknown")
        for verb in ("check", "fmt", "convert", "expand", "derive", "run",
                     "compile", "conformance"):
            self.fail_with("required", verb)
        self.assertIn("cleave", self.succeed("--version"))

    def test_missing_files(self):
        self.fail_with("none.rules", "check", "none.rules")
        self.fail_with("none.rules", "fmt", "none.rules")
        self.fail_with("none.rules", "convert", "none.rules")
        for verb in ("expand", "explain", "jvp", "vjp"):
            self.fail_with("none.rules", verb, "none.rules", "--fn", "f")
        self.fail_with("none.rules", "coverage", "none.rules")
        self.fail_with("none.rules", "derive", "softmax", "jvp", "none.rules")
        self.fail_with("none", "conformance", "none")
        self.fail_with("none", "doc", "none")
        self.fail_with("none", "run", "new.rules", "--fn", "pick", "--input",
                       "none", "--output", "out")
        self.fail_with("none.rules", "compile", "none.rules", "--fn", "f", "-o",
                       "out")

    def test_shipped_rules_that_are_not_there(self):
        verbs = {
            "check": ["new.rules"],
            "coverage": [],
            "conformance": ["."],
            "doc": [],
            "expand": ["new.rules", "--fn", "pick"],
            "explain": ["new.rules", "--fn", "pick"],
            "vmap": ["new.rules", "--fn", "pick", "--in-axes", "0"],
            "jvp": ["new.rules", "--fn", "pick"],
            "vjp": ["new.rules", "--fn", "pick"],
            "derive": ["soft_argmax", "vjp", "new.rules"],
            "run": ["new.rules", "--fn", "pick", "--input", "i",
                    "--output", "o"],
            "compile": ["new.rules", "--fn", "pick", "-o", "o"],
        }
        for verb, arguments in verbs.items():
            self.fail_with("CLEAVE_RULES", verb, *arguments, rules=None)
            self.fail_with("none", verb, *arguments, rules="none")
        # Set to nothing, it stands for no shipped rules.
        self.fail_with("`softmax`", "check", "new.rules", rules="")
        self.fail_with("no op", "coverage", rules="")
        self.fail_with("unsupported", "conformance", ".", rules="")
        for verb in ("fmt", "convert"):
            result = self.run_cleave(verb, "new.rules", rules=None)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_names_that_are_nearly_right(self):
        self.fail_with("did you mean `soft_argmax`?", "check", "new.rules",
                       "--op", "soft_argmx")
        self.fail_with("did you mean `jvp exp`?", "check",
                       os.path.join(RULES, "derivative"), "--op", "jvp ex")
        self.fail_with("did you mean `soft_argmax`?", "coverage", "new.rules",
                       "--op", "softargmax")
        self.fail_with("did you mean `aten.gelu`?", "doc", "softmax",
                       "aten.gelus")
        self.fail_with("did you mean `soft_argmax`?", "expand", "new.rules",
                       "--fn", "pick", "--preserve", "softargmax")
        for verb in ("expand", "explain", "jvp", "vjp"):
            self.fail_with("did you mean `pick`?", verb, "new.rules", "--fn",
                           "pik")
        self.fail_with("did you mean `pick`?", "run", "new.rules", "--fn",
                       "pik", "--input", "i", "--output", "o")
        self.write("host.rules", "language 1\n\n"
                   "aten twice(Tensor self) -> Tensor\n  = 2 * self\n")
        self.fail_with("declare no op", "check", "host.rules")

    # On a terminal stderr shows what is done; an interrupt ends the run with
    # the verdicts so far.
    def test_progress_and_interrupt(self):
        controller, terminal = pty.openpty()
        with subprocess.Popen(
            [CLEAVE, "check", RULES, "--json", "report"],
            cwd=self.folder,
            env={**os.environ, "CLEAVE_RULES": RULES},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal,
            encoding="utf-8",
        ) as process:
            os.close(terminal)
            shown = b""
            while b"[1/" not in shown:
                shown += os.read(controller, 1000)
            process.send_signal(signal.SIGINT)
            try:
                while chunk := os.read(controller, 1000):
                    shown += chunk
            except OSError:
                pass  # the terminal is closed
            out, _ = process.communicate(timeout=240)
        os.close(controller)
        self.assertIn(b"interrupt again to stop at once", shown)
        self.assertIn(b"not every op was checked", shown)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(out, r"checked \d rules, seed 1")
        self.assertIn(" agrees ", out)
        with open(self.path("report"), encoding="utf-8") as file:
            self.assertLess(len(json.load(file)["ops"]), 10)

    def test_malformed_rules(self):
        self.write("bad.rules", "language 1\n\nop f(x: T[S..] -> T[S..]\n  = x\n")
        self.write("bad.json", '{"language": 1, "entries": [{"kind": "op"}]}')
        self.write("not.json", "{")
        for name in ("bad.rules", "bad.json", "not.json"):
            self.fail_with(name, "fmt", name)
            self.fail_with(name, "convert", name)
            self.fail_with(name, "check", name)
            self.fail_with(name, "expand", name, "--fn", "f")
        self.fail_with("bad.rules:3:", "fmt", "bad.rules")
        self.write("mark.rules", b"\xef\xbb\xbflanguage 1\n")
        self.fail_with("mark.rules:1:1: error: a byte order mark", "check",
                       "mark.rules")

    def test_malformed_calls(self):
        self.fail_with("nothing", "check", "new.rules", "--op", "none*")
        self.fail_with("f99", "check", "new.rules", "--dtype", "f99")
        self.fail_with("L9", "check", "new.rules", "--layers", "L9")
        self.fail_with("-1 is no number of seconds", "check", "new.rules",
                       "--seconds", "-1")
        self.fail_with("none", "expand", "new.rules", "--fn", "none")
        self.fail_with("axes", "vmap", "new.rules", "--fn", "pick", "--in-axes",
                       "0,0")
        self.fail_with("axes", "vmap", "new.rules", "--fn", "pick", "--in-axes",
                       "-2")
        self.fail_with("in_axes[0] is 7", "vmap", "new.rules", "--fn", "pick",
                       "--in-axes", "7")
        self.fail_with("input `z`", "jvp", "new.rules", "--fn", "pick", "--wrt",
                       "z")

    def test_malformed_tensors(self):
        run = ("run", "new.rules", "--fn", "pick", "--output", "out", "--input")
        self.write("short", b"\1\0")
        self.fail_with("short", *run, "short")
        self.write("long", b"\xff" * 16)
        self.fail_with("long", *run, "long")
        write_safetensors(self.path("z"), {"z": ([1], [0])})
        self.fail_with("tensor `x`", *run, "z")
        write_safetensors(self.path("xz"), {"x": ([1], [0]), "z": ([1], [0])})
        self.fail_with("input `z`", *run, "xz")
        write_safetensors(self.path("rank"), {"x": ([1, 1], [0])})
        self.fail_with("rank: the input `x` has 2 axes", *run, "rank")
        write_safetensors(self.path("x"), {"x": ([1], [0])})
        self.fail_with(".tangent", *run, "x", "--jvp")
        self.fail_with("no_folder", "run", "new.rules", "--fn", "pick",
                       "--input", "x", "--output", "no_folder/out")
        self.assertFalse(os.path.exists(self.path("out")))

    # A rule may be wrong, hostile or huge; it does not abort the command.
    def test_hostile_rules(self):
        self.write("huge.rules", "language 1\n\n"
                   "fn f(x: f32[4611686018427387904, 4]) -> f32[4]\n"
                   "  = reduce_sum(x * x, axes: [0])\n")
        result = self.run_cleave("expand", "huge.rules", "--fn", "f")
        self.assertIn(result.returncode, (0, 2), result.stderr)
        self.write("flat.rules", "language 1\n\n"
                   "fn f(x: f32[4611686018427387904, 4]) -> f32[4]\n"
                   "  = reshape(x, shape: [4])\n")
        self.fail_with("", "expand", "flat.rules", "--fn", "f")
        self.write("sort.rules", "language 1\n\n"
                   "op sort(x: T[S..]) -> T[S..]\n  where T: float\n  = x\n")
        self.fail_with("primitive", "check", "sort.rules")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
