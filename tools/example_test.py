#!/usr/bin/python3
"""Runs `cleave example` of the built command.

    example_test.py CLEAVE RULES EXAMPLES
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

CLEAVE, RULES, EXAMPLES = (os.path.abspath(path) for path in sys.argv[1:4])


class ExampleTest(unittest.TestCase):
    def run_example(self, *arguments, without=None):
        environment = {
            **os.environ,
            "CLEAVE_RULES": RULES,
            "CLEAVE_EXAMPLES": EXAMPLES,
            "CLEAVE_CACHE": "",
        }
        environment.pop(without, None)
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(
                [CLEAVE, "example", *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                check=False,
            )

    def test_examples_are_listed_and_run(self):
        result = self.run_example()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertGreater(len(lines), 1)
        for line in lines:
            self.assertRegex(line, r"^[a-z_]+ +\S.*$")
        name = lines[0].split()[0]
        result = self.run_example(name)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotEqual(result.stdout, "")

    def test_times_are_left_out(self):
        time = re.compile(r"\d m?s\b")
        result = self.run_example("hessian_vector_product")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, time)
        result = self.run_example("hessian_vector_product", "--no-times")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotRegex(result.stdout, time)

    def test_names_that_are_not_there(self):
        result = self.run_example("sin_cosine")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(
            result.stderr,
            "cleave: there is no example `sin_cosine` (did you mean `sin_cos`?)\n",
        )
        result = self.run_example("nothing_of_the_kind")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertNotIn("did you mean", result.stderr)

    def test_folders_that_are_not_there(self):
        for variable in ["CLEAVE_RULES", "CLEAVE_EXAMPLES"]:
            result = self.run_example("sin_cos", without=variable)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(f"{variable} is not set", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
