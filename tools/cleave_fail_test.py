#!/usr/bin/python3
"""Runs the built command: how each verb fails.

    cleave_fail_test.py CLEAVE RULES
"""

import json
import os
import pty
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CLEAVE,
    RULES,
    SOFT_ARGMAX,
    CommandTest,
    write_safetensors,
)


class CleaveFailTest(CommandTest):
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
                 "vjp", "aot", "replay", "derive", "run", "debug",
                 "compile", "coverage", "conformance", "example", "doc",
                 "verify-certificate", "mutate", "merge"]
        for verb in verbs:
            self.assertIn("Usage", self.succeed(verb, "--help"))
            self.fail_with("--help", verb, "--unknown")
        self.fail_with("--unknown", "coverage", "--unknown")
        for verb in ("check", "fmt", "convert", "expand", "aot", "replay",
                     "derive", "run", "debug", "compile", "conformance",
                     "verify-certificate", "merge"):
            self.fail_with("required", verb)
        self.assertIn("cleave", self.succeed("--version"))

    def test_missing_files(self):
        self.fail_with("none.rules", "check", "none.rules")
        self.fail_with("none.rules", "fmt", "none.rules")
        self.fail_with("none.rules", "convert", "none.rules")
        for verb in ("expand", "explain", "jvp", "vjp", "aot", "debug"):
            self.fail_with("none.rules", verb, "none.rules", "--fn", "f")
        self.fail_with("none.json", "replay", "none.json")
        self.fail_with("none.json", "merge", "none.json")
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
            "aot": ["new.rules", "--fn", "pick", "--dynamic"],
            "derive": ["soft_argmax", "vjp", "new.rules"],
            "run": ["new.rules", "--fn", "pick", "--input", "i",
                    "--output", "o"],
            "debug": ["new.rules", "--fn", "pick", "--at", "x=[1]"],
            "compile": ["new.rules", "--fn", "pick", "-o", "o"],
        }
        for verb, arguments in verbs.items():
            self.fail_with("none", verb, *arguments, rules="none")
        # Not set, it leaves the rules of the program.
        result = self.run_cleave("expand", "new.rules", "--fn", "pick",
                                 rules=None)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(
            result.stdout,
            self.run_cleave("expand", "new.rules", "--fn", "pick").stdout)
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
        for verb in ("expand", "explain", "jvp", "vjp", "aot", "debug"):
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
        self.assertEqual(process.returncode, 130)
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

    def test_malformed_values(self):
        debug = ("debug", "new.rules", "--fn", "pick")
        self.fail_with("no tensor `x`", *debug)
        for value, message in {
            "x": "`x` is not of the form NAME=VALUE",
            "=1": "not of the form NAME=VALUE",
            "x=": "it ends early",
            "x=[1": "it ends early",
            "x=[1]]": "unexpected `]`",
            "x=[1,]": "unexpected `]`",
            "x=[1 2]": "unexpected `2`",
            "x=[[1,2],[3]]": "a list of 1 beside one of 2",
            "x=[[1],2]": "a number beside a list",
            "x=[[],2]": "a number beside a list",
            "x=" + "[" * 99: "more than 32 axes",
            "x=[1.5.2]": "`1.5.2` is no f64",
            "x=1": "the input `x` has 0 axes",
            "z=1": "no tensor `x`",
        }.items():
            self.fail_with(message, *debug, "--at", value)
        self.fail_with("no input `z`", *debug, "--at", "x=[1]", "z=1")
        self.fail_with("`x` is given twice", *debug, "--at", "x=[1]", "x=[2]")
        self.fail_with("x.tangent", *debug, "--at", "x=[1]", "--jvp", "--wrt",
                       "x")
        self.fail_with("no tensor named", *debug, "--at", "x=[1]", "--jvp")
        self.fail_with("y.cotangent", *debug, "--at", "x=[1]", "--vjp")
        self.fail_with("there is no output `z`: y", *debug, "--at", "x=[1]",
                       "--of", "z")
        self.fail_with("no element [3] of `y`", *debug, "--at", "x=[1]",
                       "--element", "3")
        self.fail_with("`b` is no index", *debug, "--at", "x=[1]",
                       "--element", "b")
        self.fail_with("--ulp", *debug, "--at", "x=[1]", "--ulp", "-1")
        self.fail_with("--atol", *debug, "--at", "x=[1]", "--atol", "-1")
        self.fail_with("an axis of extent 0 has no index", *debug, "--at",
                       "x=[]")

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
