#!/usr/bin/python3
"""Runs the script behind cleave_rule_test as Bazel runs tests.

    rule_test_test.py CHECKER RULES SCRIPT
"""

import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CLEAVE,
    CommandTest,
)

SCRIPT = os.path.abspath(sys.argv[3])

DEFS = """language 1

def plus(x, by) = x + by

op unchecked(x: f32[n]) -> f32[n]
  spec y[i] = x[i] + 1
  = x + 2
"""

OPS = """language 1

op one_more(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
  = plus(x, 1)

op two_more(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 2
  = plus(x, 2)

op three_more(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 3
  = plus(x, 4)
"""


class RuleTestTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("defs.rules", DEFS)
        self.write("ops.rules", OPS)

    def run_script(self, *arguments, shard=None, shards=0):
        outputs = self.path(f"outputs{shard}")
        os.makedirs(outputs, exist_ok=True)
        environment = {"PATH": os.environ["PATH"],
                       # The rules of the program are taken all the same.
                       "CLEAVE_RULES": "/none",
                       "TEST_UNDECLARED_OUTPUTS_DIR": outputs}
        if shards:
            environment.update(
                TEST_TOTAL_SHARDS=str(shards), TEST_SHARD_INDEX=str(shard),
                TEST_SHARD_STATUS_FILE=os.path.join(outputs, "status"))
        done = subprocess.run(
            [SCRIPT, CLEAVE, *arguments], cwd=self.folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            check=False)
        report = os.path.join(outputs, "report.json")
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                return done, json.load(file)
        return done, None

    def test_it_exits_as_the_check_does(self):
        ops = ["ops.rules", "--", "defs.rules", "--"]
        done, report = self.run_script(*ops, "--op=three_more", "--layers=L2")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("three_more L2 disagrees", done.stdout)
        self.assertEqual(report["totals"]["disagrees"], 1)
        done, report = self.run_script(*ops, "--op=t*", "--layers=L1")
        self.assertEqual(done.returncode, 0, done.stdout)
        # The definitions that these ops use are not checked.
        self.assertEqual(list(report["ops"]), ["three_more", "two_more"])
        done, _ = self.run_script("ops.rules", "--", "--")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("`plus`", done.stdout)

    def test_shards_check_each_rule_once(self):
        checked = []
        for shard in range(4):
            done, report = self.run_script(
                "ops.rules", "defs.rules", "--", "defs.rules", "--",
                "--layers=L1", shard=shard, shards=4)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertTrue(
                os.path.exists(self.path(f"outputs{shard}/status")))
            self.assertEqual(report["shard"]["number"], shard + 1)
            checked += report["ops"]
        self.assertEqual(sorted(checked),
                         ["one_more", "three_more", "two_more", "unchecked"])
        self.succeed("merge",
                     *(f"outputs{shard}/report.json" for shard in range(4)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
