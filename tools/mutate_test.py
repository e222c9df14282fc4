#!/usr/bin/python3
"""Runs `mutate` of the command that checks alone.

    mutate_test.py CHECKER RULES
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CLEAVE,
    CommandTest,
    RULES,
)

EXCESS = """language 1

op excess(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 1.5 ulp
  = expm1(x)
"""

# Nothing is claimed.
TWICE = """language 1

op twice(x: f32[n]) -> f32[n] = x * 2
"""


class MutateTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("excess.rules", EXCESS)
        self.write("twice.rules", TWICE)

    def report(self, *arguments):
        out = self.succeed("mutate", *arguments, "--json", "report.json")
        with open(self.path("report.json"), encoding="utf-8") as file:
            report = json.load(file)
        del report["seconds"]
        return out, report

    def test_mutants_of_a_rule_that_claims_all_are_killed(self):
        out, report = self.report("excess.rules", "--count", "6")
        self.assertEqual(report["totals"]["killed"], 6, out)
        self.assertEqual(report["totals"]["survived"], 0, out)
        self.assertEqual(report["survivors"], [])
        self.assertEqual(sum(report["layers"].values()), 6)
        self.assertEqual(
            sum(tally["killed"] for tally in report["operators"].values()), 6)
        self.assertIn("6 killed (100.0 %)", out)
        self.assertEqual(
            self.report("excess.rules", "--count", "6", "--jobs", "1")[1],
            report)
        self.assertNotEqual(
            self.report("excess.rules", "--count", "6", "--seed", "2")[1],
            report)

    def test_survivors_are_shown_as_rule_text(self):
        out, report = self.report("twice.rules", "--count", "0")
        text = "op twice(x: f32[n]) -> f32[n]\n  = x + 2\n"
        self.assertIn("x * 2  ->  x + 2\n    op twice", out)
        survivor, = [s for s in report["survivors"] if s["text"] == text]
        self.assertEqual(survivor["rule"], "twice")
        self.assertEqual(survivor["operator"], "arithmetic")
        self.assertEqual(survivor["place"], "twice.rules:3:33")
        self.assertEqual(survivor["verdicts"]["twice L2"],
                         "not checked: no spec")
        self.assertTrue(survivor["allclose_kills"])

    def test_what_is_asked_for_must_be_there(self):
        self.fail_with("nothing to mutate", "mutate", "excess.rules", "--ops",
                       "twice")
        self.fail_with("5/4 is no shard", "mutate", "--shard", "5/4")

    def test_an_interrupt_ends_it_with_what_is_done(self):
        with subprocess.Popen(
                [CLEAVE, "mutate", "--count", "0", "--json", "report.json"],
                cwd=self.folder, stdout=subprocess.PIPE,
                env={**os.environ, "CLEAVE_RULES": RULES, "CLEAVE_CACHE": ""},
                stderr=subprocess.PIPE, encoding="utf-8") as process:
            time.sleep(5)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("not every mutant was checked", err)
        self.assertIn("killed by", out)
        with open(self.path("report.json"), encoding="utf-8") as file:
            self.assertIn("killed", json.load(file)["totals"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
