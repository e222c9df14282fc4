#!/usr/bin/python3
"""Certificates of `check`: what is skipped, and what becomes of them when a
process is killed, a disk is full, or a file is damaged.

    certificate_test.py CHECKER RULES
"""

import os
import re
import resource
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[0] = "tools"
from cleave_testing import (  # pylint: disable=wrong-import-position
    CLEAVE,
    CommandTest,
)

OPS = """\
language 1

def half(x) = x / 2

op a(x: f32[n]) -> f32[n]
  spec y[i] = x[i] / 4 * 2
  = half(x)

op b(x: f32[n]) -> f32[n]
  spec y[i] = x[i] / 4
  = half(half(x))

op c(x: f32[n]) -> f32[n]
  spec y[i] = -(-1 - x[i])
  accuracy f32 within 1 ulp
  = x + 1

op d(x: f32[n]) -> f32[n]
  spec y[i] = 1 + x[i] + x[i]
  accuracy f32 within 1 ulp + 2 cond
  = x + x + 1
"""
NAMES = ["a", "b", "c", "d"]
QUICK = ("--layers", "L1,L2")
KEPT = ("--certificates", "kept")


def no_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


class CertificateTest(CommandTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("mine"))
        self.write("mine/ops.rules", OPS)

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [CLEAVE, *arguments],
            cwd=self.folder,
            # No other rules are loaded: that is quick.
            env={**os.environ, "CLEAVE_RULES": "", "CLEAVE_CACHE": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            # Python ignores the signal of a file that grows too large.
            restore_signals=False,
            **options,
        )

    def run_it(self, *arguments, status=0, **options):
        """stdout and stderr."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, status, out + err)
        return out, err

    def check(self, *arguments, **options):
        return self.run_it("check", "mine", *arguments, **options)

    def checked(self, err):
        """The ops that a run checked, by its progress."""
        return sorted(re.findall(r"^\[\d+/\d+\] (\w+)", err, re.M))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_what_is_unchanged_is_not_checked_again(self):
        out, err = self.check(*QUICK, *KEPT)
        self.assertEqual(self.checked(err), NAMES)
        self.assertIn("checked 4 rules, seed 1", out)
        self.assertNotIn("certified", out)
        out, err = self.check(*QUICK, *KEPT)
        self.assertEqual(err, "")
        self.assertIn("checked 0 rules, 4 as certified, seed 1: 0 disagree",
                      out)
        self.assertIn("not checked now: 4 of 4 rules, unchanged since they "
                      "were checked here; --all checks them\n", out)
        for name in NAMES:
            self.assertRegex(out, rf"(?m)^{name} .*own \d{{4}}-\d\d-\d\d$")
        _, err = self.check(*QUICK, *KEPT, "--all")
        self.assertEqual(self.checked(err), NAMES)
        _, err = self.check(*QUICK, *KEPT, "--seed", "2")
        self.assertEqual(self.checked(err), NAMES)
        _, err = self.check(*QUICK, "--certificates", "")
        self.assertEqual(self.checked(err), NAMES)
        self.write("mine/ops.rules",
                   OPS.replace("def half(x) = x / 2", "def half(x) = 0.5 * x"))
        _, err = self.check(*QUICK, *KEPT)
        self.assertEqual(self.checked(err), ["a", "b"])

    def test_they_are_kept_with_the_other_caches(self):
        cache = self.path("cache")
        environment = {**os.environ, "CLEAVE_RULES": "", "CLEAVE_CACHE": cache}
        for _ in range(2):
            out = subprocess.run(
                [CLEAVE, "check", "mine", *QUICK], cwd=self.folder,
                env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, encoding="utf-8", check=True).stdout
        self.assertIn("4 as certified", out)
        self.assertEqual(len(os.listdir(os.path.join(cache, "certificates"))),
                         4)

    def test_a_killed_check_loses_what_it_was_at(self):
        process = self.start("check", "mine", *KEPT)
        shown = ""
        while "[2/4]" not in shown:
            line = process.stderr.readline()
            self.assertNotEqual(line, "", shown)
            shown += line
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL)
        out, err = self.check(*KEPT)
        self.assertFalse(set(self.checked(shown)) & set(self.checked(err)),
                         shown + err)
        self.assertRegex(out, r"checked [0-2] rules, [2-4] as certified")
        out, _ = self.check(*KEPT)
        self.assertIn("checked 0 rules, 4 as certified", out)

    def test_two_checks_at_once(self):
        first = self.start("check", "mine", *KEPT)
        second = self.start("check", "mine", *KEPT)
        for process in (first, second):
            out, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 0, out + err)
            self.assertNotIn("cleave:", err)
        out, err = self.check(*KEPT)
        self.assertEqual(err, "")
        self.assertIn("checked 0 rules, 4 as certified", out)
        self.assertEqual(len(os.listdir(self.path("kept"))), 4)

    def test_a_full_disk(self):
        out, err = self.check(*QUICK, *KEPT, preexec_fn=no_room)
        self.assertIn("checked 4 rules", out)
        self.assertEqual(err.count("certificates are not kept: "), 1, err)
        self.assertIn("File too large", err)
        self.assertEqual(os.listdir(self.path("kept")), [])
        self.check(*QUICK, "--certify", "c.json")
        before = self.read("c.json")
        _, err = self.check(*QUICK, "--certify", "c.json", preexec_fn=no_room,
                            status=2)
        self.assertIn("c.json", err)
        self.assertEqual(self.read("c.json"), before)

    def test_certify_writes_to_devices(self):
        out, _ = self.check(*QUICK, "--certify", "/dev/stdout")
        self.assertIn('{"format": "cleave-certificates/1",\n', out)
        _, err = self.check(*QUICK, "--certify", "/dev/full", status=2)
        self.assertIn("/dev/full: No space left on device", err)

    def test_a_folder_that_cannot_be_one(self):
        out, err = self.check(*QUICK, "--certificates", "new.rules/kept")
        self.assertIn("checked 4 rules", out)
        self.assertIn("cleave: certificates are not kept: ", err)
        os.mkdir(self.path("open"))
        os.chmod(self.path("open"), 0o777)
        out, err = self.check(*QUICK, "--certificates", "open")
        self.assertIn("checked 4 rules", out)
        self.assertIn("may be written by others", err)
        self.assertEqual(os.listdir(self.path("open")), [])

    def test_damaged_ones_are_made_anew(self):
        self.check(*QUICK, *KEPT)
        files = [self.path(f"kept/{name}")
                 for name in sorted(os.listdir(self.path("kept")))]
        with open(files[0], "r+b") as file:
            file.truncate(100)
        with open(files[1], "r+b") as file:
            edited = file.read().replace(b'"samples":', b'"samples":9', 1)
            file.seek(0)
            file.write(edited)
        out, err = self.check(*QUICK, *KEPT)
        self.assertEqual(len(self.checked(err)), 2)
        self.assertRegex(err, r"cleave: a certificate is left out, .* is "
                              r"damaged: .* \(and 1 more\)")
        self.assertIn("checked 2 rules, 2 as certified", out)
        _, err = self.check(*QUICK, *KEPT)
        self.assertEqual(err, "")

    def test_those_that_come_with_rules(self):
        shipped = "mine/certificates.json"
        out, _ = self.check(*QUICK, "--certify", shipped)
        self.assertIn(f"{shipped}: 4 certificates\n", out)
        out, err = self.check(*QUICK, "--sample-seed", "5")
        self.assertEqual(len(self.checked(err)), 3)
        self.assertIn(f"not checked now: 1 of 4 rules, as certified by "
                      f"{shipped}; 3 that it certifies, drawn by seed 5, were "
                      "checked and are as certified; --all checks the rest\n",
                      out)
        self.assertIn(" shipped 2", out)
        _, err = self.check(*QUICK, "--all")
        self.assertEqual(self.checked(err), NAMES)
        # Another check, which they do not cover.
        _, err = self.check("--layers", "L2")
        self.assertEqual(self.checked(err), NAMES)
        whole = self.read(shipped)
        self.write(shipped, whole.replace('"samples":', '"samples":9'))
        out, _ = self.check(*QUICK, status=1)
        self.assertIn("checked 4 rules, seed 1: 0 disagree", out)
        self.assertRegex(out, f"NOT AS CERTIFIED by {shipped}: [a-d] L[12]: "
                              "samples 9")
        self.assertIn("what they cover was checked\n", out)
        self.write(shipped, whole[:len(whole) // 2])
        out, err = self.check(*QUICK)
        self.assertEqual(self.checked(err), NAMES)
        self.assertIn(f"certificates are left out: {shipped}: parse error at "
                      "line ", err)
        # It is not replaced unseen.
        out, err = self.check(*QUICK, "--certify", shipped, status=2)
        self.assertEqual(out, "")
        self.assertIn(f"{shipped}: parse error at line ", err)
        self.assertEqual(self.read(shipped), whole[:len(whole) // 2])

    def test_certify_keeps_what_is_of_other_ops(self):
        self.check(*QUICK, "--certify", "c.json")
        whole = self.read("c.json")
        # `c` is another rule now, whose certificate says nothing.
        self.write("mine/ops.rules", OPS.replace("= x + 1\n", "= 1 + x\n"))
        out, _ = self.check(*QUICK, "--certify", "c.json", "--op", "b")
        self.assertIn("c.json: 3 certificates\n", out)
        self.check(*QUICK, "--certify", "c.json", "--op", "c")
        self.assertEqual(re.findall(r'^"([a-d])": ', self.read("c.json"), re.M),
                         NAMES)
        self.assertNotEqual(self.read("c.json"), whole)
        # Another seed: the file is of one.
        out, _ = self.check(*QUICK, "--certify", "c.json", "--op", "b",
                            "--seed", "2")
        self.assertIn("c.json: 1 certificates\n", out)

    def test_certify_names_what_it_does_not_certify(self):
        self.write("mine/ops.rules", OPS.replace("= x + 1\n", "= x + 2\n"))
        out, _ = self.check(*QUICK, "--certify", "c.json", status=1)
        self.assertIn("c.json: 3 certificates\nnot certified: c\n", out)

    def test_verify_certificate(self):
        shipped = "mine/certificates.json"
        self.check(*QUICK, "--certify", shipped)
        out, _ = self.run_it("verify-certificate", shipped, "--seed", "7")
        self.assertEqual(
            out, "verified 3 of 4 certificates, drawn by seed 7: 3 as "
            "certified, 0 not; 0 of other rules, 1 not checked again\n")
        out, _ = self.run_it("verify-certificate", shipped, "mine/ops.rules",
                             "--part", "1")
        self.assertIn("4 as certified, 0 not", out)
        whole = self.read(shipped)
        self.write(shipped, whole.replace('"samples":', '"samples":9'))
        out, _ = self.run_it("verify-certificate", shipped, status=1)
        self.assertIn(f"NOT AS CERTIFIED by {shipped}: ", out)
        for text in ("", "{}", whole[:300], whole.replace("agrees", "fine")):
            self.write(shipped, text)
            out, err = self.run_it("verify-certificate", shipped, status=2)
            self.assertEqual(out, "")
            self.assertIn(f"cleave: {shipped}: ", err)
        self.write(shipped, whole)
        self.write("mine/ops.rules", OPS.replace("= x + 1\n", "= 1 + x\n"))
        out, _ = self.run_it("verify-certificate", shipped, "--part", "1",
                             status=1)
        self.assertIn("NOT COVERED: c is another rule now", out)
        self.assertIn("verified 3 of 4", out)
        _, err = self.run_it("verify-certificate", "none.json", status=2)
        self.assertIn("none.json", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
