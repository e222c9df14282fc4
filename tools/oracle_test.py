#!/usr/bin/python3
"""Checks ops against functions of a shared library.

    oracle_test.py CHECKER RULES LIBRARY
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CommandTest,
)

LIBRARY = os.path.abspath(sys.argv[3])

DOUBLED = """\
language 1

op doubled(x: f32[S..]) -> f32[S..]
  spec y[s..] = 2 * x[s..]
  accuracy f32 within 1 ulp
{
  x + x
}
"""


class OracleTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("doubled.rules", DOUBLED)

    def check(self, symbol, *arguments):
        return self.run_cleave("check", "doubled.rules", "--op", "doubled",
                               "--oracle", f"{LIBRARY}:{symbol}", *arguments)

    def test_a_right_function_agrees(self):
        done = self.check("twice")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"doubled +agrees \d")
        # The library prints; the report is the check's alone.
        self.assertNotIn("what a library prints", done.stdout)
        self.assertIn("what a library prints", done.stderr)

    def test_a_crash_is_refuted_at_its_call(self):
        done = self.check("fragile")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ended its process by signal 6 (Aborted)", done.stdout)
        self.assertIn(f"--oracle doubled={LIBRARY}:fragile", done.stdout)

    def test_a_function_that_does_not_return_is_refuted(self):
        done = self.check("endless", "--oracle-seconds", "0.5")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("did not return within 0.5 s", done.stdout)

    def test_names_that_are_none(self):
        self.fail_with("undefined symbol: nothing", "check", "doubled.rules",
                       "--oracle", f"doubled={LIBRARY}:nothing")
        self.fail_with("no_library.so", "check", "doubled.rules", "--oracle",
                       "doubled=./no_library.so:twice")
        self.fail_with("is for which op?", "check", "doubled.rules",
                       "--oracle", f"{LIBRARY}:twice")
        self.fail_with("is no oracle as in", "check", "doubled.rules",
                       "--oracle", "twice")
        self.fail_with("has two oracles", "check", "doubled.rules", "--oracle",
                       f"doubled={LIBRARY}:twice", "--oracle",
                       f"doubled={LIBRARY}:fragile")
        self.fail_with("--oracle names one", "check", "doubled.rules",
                       "--layers", "host")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
