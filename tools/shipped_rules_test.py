#!/usr/bin/python3
"""Checks the shipped rules, all of them and all anew.

    shipped_rules_test.py CHECKER RULES
"""

import json
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CommandTest,
    RULES,
)


class ShippedRulesTest(CommandTest):
    def test_they_agree(self):
        done = self.run_cleave("check", RULES, "--all", "--json", "report.json")
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(self.path("report.json"), encoding="utf-8") as file:
            totals = json.load(file)["totals"]
        self.assertGreater(totals["rules"], 190)
        self.assertEqual(totals["disagrees"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
