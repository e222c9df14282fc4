#!/usr/bin/python3
"""Runs the command that checks alone, beside the whole one.

    checker_test.py CHECKER RULES CLEAVE
"""

import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CommandTest,
    RULES,
)

WHOLE = os.path.abspath(sys.argv[3])


def without_seconds(report):
    for op in report["ops"].values():
        del op["seconds"]
    return report


class CheckerTest(CommandTest):
    def test_its_verdicts_are_those_of_the_whole_command(self):
        self.succeed("check", "new.rules", "--json", "own.json",
                     "--seconds", "3600")
        subprocess.run(
            [WHOLE, "check", "new.rules", "--json", "whole.json",
             "--seconds", "3600"],
            cwd=self.folder, env={**os.environ, "CLEAVE_RULES": RULES},
            stdout=subprocess.DEVNULL, check=True)
        own, whole = (
            without_seconds(json.loads(self.read(name)))
            for name in ("own.json", "whole.json"))
        self.assertEqual(list(own["ops"]), ["soft_argmax"])
        self.assertEqual(own, whole)

    def test_it_refuses_the_layer_that_compiles(self):
        self.fail_with("no code generator", "check", "new.rules", "--kernels")
        self.fail_with("no code generator", "check", "new.rules",
                       "--layers", "L1,L6")

    def test_the_full_tier_has_sweeps(self):
        self.write("twice.rules", """language 1

op twice(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] * 2
  = x + x
""")
        # More than it can do in that time.
        done = self.run_cleave("check", "twice.rules", "--tier", "full", "--op",
                               "sweep * 01/64", "--seconds", "0.2", "--json",
                               "report.json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("sweep twice f32 (1 of 64)", done.stdout)
        self.assertIn("sweep twice f32 01/64 L3 is inconclusive", done.stdout)
        report = json.loads(self.read("report.json"))
        self.assertEqual(list(report["ops"]), ["sweep twice f32 01/64"])
        self.assertEqual(report["totals"]["sweep_parts"], 1)
        self.assertEqual(report["totals"]["rules"], 0)
        self.fail_with("nothing to check", "check", "twice.rules", "--op",
                       "sweep * 01/64")

    def test_it_has_no_other_verb(self):
        self.fail_with("", "expand", "new.rules", "--fn", "pick")

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
