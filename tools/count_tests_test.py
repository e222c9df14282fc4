#!/usr/bin/env python3
"""Tests of count_tests.py on the files of a made-up run."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

# Python looks beside the file that a symlink of the sandbox points to, which is
# the source tree: import what the test declares, and leave no cache there.
sys.dont_write_bytecode = True
sys.path[0] = "tools"
import count_tests  # pylint: disable=wrong-import-position


def result(label, status, xml_uri=None, shard=1):
    output = [{"name": "test.xml", "uri": xml_uri}] if xml_uri else []
    return {
        "id": {"testResult": {"label": label, "shard": shard, "run": 1}},
        "testResult": {"status": status, "testActionOutput": output},
    }


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def xml(self, name, cases):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("<testsuites><testsuite>{}</testsuite></testsuites>"
                       .format(cases))
        return "file://" + path

    def count(self, events, status):
        path = os.path.join(self.folder, "events.json")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = count_tests.main([path, str(status)])
        return code, out.getvalue().splitlines()

    def test_counts_cases(self):
        uri = self.xml("a.xml", '<testcase name="A" status="run"/>'
                       '<testcase name="B" status="run"/>'
                       '<testcase name="C" status="notrun"/>'
                       '<testcase name="D" status="run" result="skipped"/>')
        self.assertEqual(self.count([result("//a", "PASSED", uri)], 0),
                         (0, ["1 skipped", "2 passed, 0 failed"]))

    def test_names_failed_cases(self):
        uri = self.xml("a.xml", '<testcase name="A" classname="S">'
                       '<failure/></testcase><testcase name="B"/>')
        self.assertEqual(self.count([result("//a", "FAILED", uri)], 3),
                         (1, ["FAILED //a S.A", "1 passed, 1 failed"]))

    def test_counts_a_test_that_died(self):
        self.assertEqual(self.count([result("//a", "TIMEOUT")], 3),
                         (1, ["FAILED //a (TIMEOUT)", "0 passed, 1 failed"]))

    def test_counts_a_test_that_was_interrupted(self):
        aborted = {"id": result("//a", "")["id"],
                   "aborted": {"reason": "USER_INTERRUPTED"}}
        code, lines = self.count([aborted], 8)
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], "0 passed, 1 failed")

    def test_the_last_attempt_counts(self):
        uri = self.xml("a.xml", '<testcase name="A"/>')
        events = [result("//a", "FAILED"), result("//a", "PASSED", uri)]
        self.assertEqual(self.count(events, 0), (0, ["1 passed, 0 failed"]))

    def test_counts_shards(self):
        uri = self.xml("a.xml", '<testcase name="A"/>')
        events = [result("//a", "PASSED", uri, shard) for shard in (1, 2)]
        self.assertEqual(self.count(events, 0), (0, ["2 passed, 0 failed"]))

    def test_counts_a_target_that_was_not_built(self):
        uri = self.xml("a.xml", '<testcase name="A"/>')
        events = [result("//a", "PASSED", uri),
                  {"id": {"targetCompleted": {"label": "//b"}},
                   "completed": {}}]
        self.assertEqual(self.count(events, 1),
                         (1, ["FAILED //b (not built)", "1 passed, 1 failed"]))

    def test_fails_if_bazel_did(self):
        uri = self.xml("a.xml", '<testcase name="A"/>')
        code, lines = self.count([result("//a", "PASSED", uri)], 1)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"))

    def test_fails_if_nothing_ran(self):
        self.assertEqual(self.count([], 0),
                         (1, ["no test ran", "0 passed, 0 failed"]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
