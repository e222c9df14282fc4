#!/usr/bin/python3
"""Runs `cleave example` of the built command.

    example_test.py CLEAVE RULES EXAMPLES
"""

import os
import re
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import CommandTest  # pylint: disable=wrong-import-position

EXAMPLES = os.path.abspath(sys.argv[3])


class ExampleTest(CommandTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, {"CLEAVE_EXAMPLES": EXAMPLES})
        patch.start()
        self.addCleanup(patch.stop)

    def test_examples_are_listed_and_run(self):
        lines = self.succeed("example").splitlines()
        self.assertGreater(len(lines), 1)
        for line in lines:
            self.assertRegex(line, r"^[a-z_]+ +\S.*$")
        name = lines[0].split()[0]
        self.assertNotEqual(self.succeed("example", name), "")

    def test_times_are_left_out(self):
        time = re.compile(r"\d m?s\b")
        run = ("example", "hessian_vector_product")
        self.assertRegex(self.succeed(*run), time)
        self.assertNotRegex(self.succeed(*run, "--no-times"), time)

    # Their rules are examples, too: they stand as fmt has them, and their ops
    # agree with their specs.
    def test_rules_are_checked(self):
        files = sorted(
            os.path.join(EXAMPLES, name)
            for name in os.listdir(EXAMPLES) if name.endswith(".rules"))
        self.assertGreater(len(files), 1)
        self.succeed("fmt", "--check", *files)
        report = self.succeed("check", os.path.join(EXAMPLES, "mlp.rules"))
        self.assertRegex(report, r"(?m)^adam .*agrees")
        self.assertRegex(report, r"checked 1 rules, .*: 0 disagree, "
                         "0 inconclusive, 0 not independent, 0 loose claims")

    def test_names_that_are_not_there(self):
        self.fail_with("there is no example `sin_cosine` (did you mean "
                       "`sin_cos`?)", "example", "sin_cosine")
        self.fail_with("there is no example `nothing_of_the_kind`\n",
                       "example", "nothing_of_the_kind")

    def test_folders_that_are_not_there(self):
        self.fail_with("CLEAVE_RULES is not set", "example", "sin_cos",
                       rules=None)
        self.fail_with("none", "example", "sin_cos", rules="none")
        with mock.patch.dict(os.environ, {"CLEAVE_EXAMPLES": "none"}):
            self.fail_with("none/mlp.rules", "example", "mlp")
        del os.environ["CLEAVE_EXAMPLES"]
        self.fail_with("CLEAVE_EXAMPLES is not set", "example", "sin_cos")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
