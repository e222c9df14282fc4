#!/usr/bin/python3
"""Runs `check` and `mutate` in shards, and `merge` on their reports.

    merge_test.py CHECKER RULES
"""

import os
import re
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

# The second disagrees, and nothing takes its last branch.
THREE = """language 1

op moved(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
  = x + 1

op wrong(x: T[n]) -> T[n]
  where T: float
  spec y[i] = x[i] + 2
  = if n == 4000 then x + 2 else x + 3

op left_as_it_is(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..]
  = x
"""


def without_seconds(text):
    text = re.sub(r'"seconds": [-+.e0-9]+', '"seconds": 0', text)
    return re.sub(r"; \d+ s\n", "; 0 s\n", text)


class MergeTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("three.rules", THREE)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def shards(self, shards, *arguments):
        """The files of the reports of all shards."""
        files = []
        for shard in range(1, shards + 1):
            files.append(f"shard{shard}of{shards}.json")
            done = self.run_cleave(*arguments, "--shard", f"{shard}/{shards}",
                                   "--json", files[-1])
            self.assertIn(done.returncode, (0, 1), done.stderr)
        return files

    def assert_merge_is_whole(self, shards, *arguments):
        whole = self.run_cleave(*arguments, "--json", "whole.json")
        files = self.shards(shards, *arguments)
        merged = self.run_cleave("merge", *reversed(files),
                                 "--json", "merged.json")
        self.assertEqual(merged.stderr, "")
        self.assertEqual(merged.returncode, whole.returncode)
        self.assertEqual(without_seconds(merged.stdout),
                         without_seconds(whole.stdout))
        self.assertEqual(without_seconds(self.read("merged.json")),
                         without_seconds(self.read("whole.json")))
        return merged

    def test_merged_checks_are_the_check_of_all(self):
        merged = self.assert_merge_is_whole(
            3, "check", os.path.join(RULES, "core/activation.rules"),
            os.path.join(RULES, "derivative/exponential.rules"),
            os.path.join(RULES, "simplify/arithmetic.rules"), "--all",
            "--coverage", "--layers", "L0,L1,L4")
        self.assertEqual(merged.returncode, 0)
        self.assertIn("jvp exp", merged.stdout)
        self.assertIn("rewrite ", merged.stdout)

    def test_merged_checks_exit_as_the_check_of_all(self):
        # More shards than rules.
        merged = self.assert_merge_is_whole(
            5, "check", "three.rules", "--coverage", "--layers", "L1,L2,L3")
        self.assertEqual(merged.returncode, 1)
        self.assertIn("wrong L2 disagrees:", merged.stdout)
        self.assertIn("three.rules:11:23: not covered", merged.stdout)
        files = [f"shard{i}of5.json" for i in range(1, 6)]
        self.assertEqual(
            self.run_cleave("merge", *files, "--allow",
                            "not-independent").returncode, 1)

    def test_allowed_verdicts_are_allowed_in_the_merged_report(self):
        self.assert_merge_is_whole(2, "check", "three.rules", "--op", "left*")
        files = [f"shard{i}of2.json" for i in (1, 2)]
        self.assertEqual(self.run_cleave("merge", *files).returncode, 1)
        self.succeed("merge", *files, "--allow", "not-independent")

    def test_merged_mutants_are_those_of_one_run(self):
        for ends in (["--draws", "20"], ["--count", "6"]):
            merged = self.assert_merge_is_whole(3, "mutate", "three.rules",
                                                *ends)
            self.assertIn("wrong fails as it is", merged.stdout)
            self.assertIn("survived:", merged.stdout)

    def test_what_does_not_fit_is_refused(self):
        check = ["check", "three.rules", "--layers", "L1"]
        first, second = self.shards(2, *check)
        self.fail_with("a shard is missing: 2/2", "merge", first)
        self.fail_with("both shard 1/2", "merge", first, second, first)
        self.run_cleave(*check, "--shard", "2/2", "--seed", "2", "--json",
                        "seed.json")
        self.fail_with("`seed` is `2` and `1`", "merge", first, "seed.json")
        self.run_cleave(*check, "--shard", "2/2", "--json", "layers.json",
                        "--layers", "L2")
        self.fail_with("`layers` is `L1 L2` and `L1`", "merge", first,
                       "layers.json")
        self.run_cleave(*check, "--shard", "2/3", "--json", "third.json")
        self.fail_with("two divisions", "merge", first, "third.json")
        self.run_cleave("mutate", "three.rules", "--draws", "2", "--shard",
                        "2/2", "--json", "mutate.json")
        self.fail_with("`verb` is `mutate` and `check`", "merge", first,
                       "mutate.json")
        self.write("three.rules", THREE + "\n// Another text.\n")
        self.run_cleave(*check, "--shard", "2/2", "--json", "text.json")
        self.fail_with("`rules` is", "merge", first, "text.json")
        self.run_cleave(*check, "--json", "whole.json")
        self.fail_with("the report of no shard", "merge", "whole.json")
        self.write("bad.json", '{"seed": 1')
        self.fail_with("bad.json: parse error at line 1", "merge", first,
                       "bad.json")
        self.fail_with("none.json", "merge", "none.json")

    def test_flags_of_shards_are_checked(self):
        self.fail_with("3/2 is no shard", "check", "three.rules", "--shard",
                       "3/2")
        self.fail_with("an oracle is for one", "check", "three.rules",
                       "--shard", "1/2", "--op", "moved", "--oracle",
                       "lib.so:f")
        self.fail_with("named like `mvoed`", "check", "three.rules",
                       "--shard", "2/2", "--op", "mvoed")

    def test_an_interrupted_shard_is_not_merged(self):
        with subprocess.Popen(
                [CLEAVE, "mutate", "--draws", "1000000", "--shard", "1/1",
                 "--json", "cut.json"],
                cwd=self.folder, stdout=subprocess.DEVNULL,
                env={**os.environ, "CLEAVE_RULES": RULES, "CLEAVE_CACHE": ""},
                stderr=subprocess.PIPE, encoding="utf-8") as process:
            time.sleep(5)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.fail_with("cut.json is not complete: shard 1/1 was interrupted",
                       "merge", "cut.json")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
