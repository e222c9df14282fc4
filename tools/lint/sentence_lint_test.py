#!/usr/bin/python3
"""The sentence lint refuses what it should, and names the place."""

import os
import subprocess
import sys
import tempfile
import unittest

LINT = os.path.abspath("tools/lint/sentence_lint.py")


class SentenceLint(unittest.TestCase):
    def lint(self, name, text):
        """The places that are refused."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            result = subprocess.run(
                [sys.executable, LINT, path], stderr=subprocess.PIPE,
                encoding="utf-8", check=False)
            places = [line.split(": ")[0].removeprefix(path + ":")
                      for line in result.stderr.splitlines()]
            self.assertEqual(result.returncode, 1 if places else 0)
            return places

    def test_comments(self):
        self.assertEqual(self.lint("a.cc", "// Sizes of it.\nint a;\n"), [])
        self.assertEqual(self.lint("a.cc", "// Those of it.\nint a;\n"), ["1"])
        self.assertEqual(self.lint("a.h", "int a;  // Of it.\n"), ["1"])
        self.assertEqual(self.lint("a.cc", "// One. What is\n// it.\n"), ["1"])
        self.assertEqual(self.lint("a.cc", "// One.\n// Whose?\n"), ["2"])
        self.assertEqual(self.lint("a.py", "# That is it.\n"), ["1"])

    def test_what_goes_on_is_no_sentence(self):
        self.assertEqual(self.lint("a.cc", "// The sum\n// Of it.\n"), [])
        self.assertEqual(self.lint("a.cc", "// Whatever it is.\n"), [])

    def test_code_is_no_comment(self):
        self.assertEqual(self.lint("a.cc", 'f("  // What ");\n'), [])
        self.assertEqual(self.lint("a.cc", 'That Those = What("Of");\n'), [])
        self.assertEqual(self.lint("a.py", 'x = "What."\n'), [])

    def test_pages(self):
        self.assertEqual(self.lint("a.md", "# A\n\nWhat it is.\n"), ["3"])
        self.assertEqual(self.lint("a.md", "- Of it.\n- The rest.\n"), ["1"])
        self.assertEqual(self.lint("a.md", "```\nWhat\n```\n| Of | a |\n"), [])


if __name__ == "__main__":
    unittest.main()
