#!/usr/bin/python3
"""Runs the program of `tools/fuzz differential`.

    program_test.py DIFFERENTIAL
"""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
RULES = os.path.abspath("rules")

# Wrong, and yet they load.
PLANTED = """language 1

rewrite planted: x + y => x

rewrite planted_too: x * y => x

rewrite planted_again: x - y => x
"""
KEPT = """language 1

// point
// x: i32[2] = 1 -3
// y: i32[2] = 0 5

fn f(x: i32[n], y: i32[n]) -> i32[n] = x + y
"""


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, check=False)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.folder.name, "a", "out")
        self.planted = os.path.join(self.folder.name, "rules")
        shutil.copytree(RULES, self.planted)
        os.chmod(os.path.join(self.planted, "simplify"), 0o777)
        with open(os.path.join(self.planted, "simplify", "planted.rules"), "w",
                  encoding="utf-8") as file:
            file.write(PLANTED)

    def tearDown(self):
        self.folder.cleanup()

    def test_help(self):
        told = run("--help")
        self.assertEqual(told.returncode, 0)
        for flag in ("--seed", "--seconds", "--jobs", "--out", "Ctrl-C"):
            self.assertIn(flag, told.stdout)

    def test_mistakes(self):
        for arguments in (["--sed", "1"], ["--seed", "x"], ["--jobs", "0"],
                          ["--rules", "/nowhere"], ["/nowhere.rules"]):
            told = run(*(["--rules", RULES] + arguments))
            self.assertEqual(told.returncode, 2, arguments)
            self.assertNotEqual(told.stderr, "", arguments)

    def test_kept_case(self):
        path = os.path.join(self.folder.name, "kept.rules")
        with open(path, "w", encoding="utf-8") as file:
            file.write(KEPT)
        told = run("--rules", RULES, path)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertRegex(told.stdout, r"kept.rules: agrees, [1-9]\d* compar")
        told = run("--rules", self.planted, path)
        self.assertEqual(told.returncode, 1, told.stdout + told.stderr)
        self.assertIn("kept.rules: simplified", told.stdout)

    def test_finding_is_shrunk_and_replayed(self):
        told = run("--rules", self.planted, "--out", self.out, "--seconds",
                   "200", "--count", "3", "--trials", "60")
        self.assertEqual(told.returncode, 1, told.stdout + told.stderr)
        found = sorted(os.listdir(self.out))
        self.assertNotEqual(found, [])
        path = os.path.join(self.out, found[0])
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("simplified", text)
        self.assertIn(f"// Replay: tools/fuzz differential {path}\n", text)
        # Little is left beside what is wrong.
        function = text[text.index("\nfn f("):]
        self.assertRegex(function, r"[-+*]")
        self.assertLess(len(function), 600, function)
        told = run("--rules", self.planted, path)
        self.assertEqual(told.returncode, 1, told.stdout)
        told = run("--rules", RULES, path)
        self.assertEqual(told.returncode, 0, told.stdout)

    def test_interrupt_keeps_what_was_found(self):
        with subprocess.Popen(
                [PROGRAM, "--rules", self.planted, "--out", self.out,
                 "--seconds", "600", "--trials", "1000000", "--jobs", "2"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                start_new_session=True) as process:
            while not os.path.exists(self.out) or not os.listdir(self.out):
                self.assertIsNone(process.poll())
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            stdout, stderr = process.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual(process.returncode, 130, stdout + stderr)
            self.assertRegex(stdout, r"\d+ functions, .* differ")
            for name in os.listdir(self.out):
                with open(os.path.join(self.out, name), encoding="utf-8") as file:
                    self.assertIn("fn f(", file.read())
            # None of its processes is left.
            with self.assertRaises(ProcessLookupError):
                for _ in range(100):
                    os.killpg(process.pid, 0)
                    time.sleep(0.1)

    def test_progress_on_a_terminal(self):
        leader, terminal = pty.openpty()
        with subprocess.Popen(
                [PROGRAM, "--rules", RULES, "--out", self.out, "--seconds", "3"],
                stdout=subprocess.PIPE, stderr=terminal) as process:
            os.close(terminal)
            shown = b""
            try:
                while piece := os.read(leader, 4096):
                    shown += piece
            except OSError:  # the other end is closed
                pass
            process.wait()
        os.close(leader)
        self.assertTrue(re.search(rb"functions, .* left", shown), shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
