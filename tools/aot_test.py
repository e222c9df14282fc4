#!/usr/bin/python3
"""Runs `cleave aot` and `cleave replay` of the built command.

    aot_test.py CLEAVE RULES
"""

import json
import os
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import CommandTest  # pylint: disable=wrong-import-position

RULES = """language 1
fn act(x: f32[n, 8], w: f32[8, 8]) -> f32[n, 8] = gelu(matmul(x, w))
fn count(i: i64[n]) -> i64[n] = i + 1
fn host(x: f32[n]) -> f32[n] = softplus(x) * x
"""


class AotTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("f.rules", RULES)
        self.rules = "f.rules"

    def aot(self, *arguments):
        return self.succeed("aot", self.rules, "--fn", *arguments)

    def test_prints_halves_and_what_is_saved(self):
        text = self.aot("act", "--dynamic")
        self.assertRegex(text, r"(?m)^// forward\ngraph \(%x: f32\[n, 8\]")
        self.assertRegex(text, r"(?m)^// backward\ngraph \(%saved\.0: ")
        self.assertRegex(text, r"saved for the backward: \d+ tensors?, 32\*n")
        sized = self.aot("act", "--size", "n=4")
        self.assertIn("f32[4, 8]", sized)
        self.assertNotIn("[n", sized)
        self.assertIn("// joint\n", self.aot("act", "--dynamic", "--print"))

    def test_partitions_and_budgets(self):
        def saved(*arguments):
            text = self.aot("act", "--size", "n=64", *arguments)
            return int(text.split("saved for the backward: ")[1].split()[2])
        default = saved()
        self.assertLessEqual(saved("--partition", "min-cut"), default)
        self.assertEqual(
            saved("--partition", "min-cut", "--budget", "0"), 0)
        self.fail_with("are for --partition min-cut", "aot",
                       self.rules, "--fn", "act", "--dynamic", "--budget",
                       "0.5")

    def test_decompositions(self):
        self.assertIn("softplus(", self.aot("host", "--dynamic"))
        self.assertNotIn(
            "softplus(",
            self.aot("host", "--dynamic", "--decompose", "softplus"))
        self.assertIn(
            "softplus(",
            self.aot("host", "--dynamic", "--decompose", "softplus",
                     "--preserve", "softplus"))
        self.assertNotIn("gelu(", self.aot("act", "--dynamic", "--expand"))
        self.fail_with("no op that the rules declare", "aot", self.rules,
                       "--fn", "act", "--dynamic", "--decompose", "gellu")

    def test_logs_are_replayed(self):
        log = self.path("log.json")
        self.aot("act", "--dynamic", "--log", log)
        report = self.succeed("replay", log)
        self.assertRegex(report, r"(?m)^joint .*  same$")
        with open(log, encoding="utf-8") as file:
            written = json.load(file)
        for phase in written["traces"][0]["phases"]:
            if phase["name"] == "joint":
                phase["graph"] += "// more\n"
        self.write("other.json", json.dumps(written))
        result = self.run_cleave("replay", "other.json")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^joint .*  differs\n    line \d+: ")
        self.write("broken.json", "{\"traces\": [")
        self.fail_with("broken.json: not a log: ", "replay", "broken.json")
        self.write("empty.json", "{}")
        self.fail_with("not a log of version", "replay", "empty.json")
        self.fail_with("cannot open", "replay", "/nowhere/log.json")

    def test_files_of_the_halves(self):
        folder = self.path("new/halves")
        arguments = ("act", "--dynamic", "--dot", folder)
        self.aot(*arguments)
        self.assertEqual(
            sorted(name for name in os.listdir(folder)
                   if name.startswith("forward")),
            ["forward.dot", "forward.json", "forward.svg", "forward.txt"])
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
            result = self.run_cleave("aot", self.rules, "--fn", *arguments)
        self.assertEqual(result.returncode, 2)
        self.assertIn("of Debian's package graphviz", result.stderr)

    def test_bad_usage(self):
        def fails(message, *arguments):
            self.fail_with(message, "aot", self.rules, "--fn", *arguments)
        fails("the extent n has no number: give it one by --size n=N", "act")
        fails("--size n: expected NAME=EXTENT", "act", "--size", "n")
        fails("--size n=-1: expected NAME=EXTENT", "act", "--size", "n=-1")
        fails("no input has the extent k", "act", "--size", "n=1,k=2")
        fails("did you mean `act`", "atc", "--dynamic")
        fails("the function has no inexact input", "count", "--dynamic")
        fails("the function has no input `y`", "act", "--dynamic", "--wrt",
              "y")
        fails("num_params_buffers is 5", "act", "--dynamic", "--params", "5")
        fails("--budget", "act", "--dynamic", "--partition", "min-cut",
              "--budget", "2")
        fails("--partition", "act", "--dynamic", "--partition", "none")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
