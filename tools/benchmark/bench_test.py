#!/usr/bin/python3
"""Runs tools/bench as it is, at small extents and without peers.

    bench_test.py BENCH WORKER RULES
"""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH, WORKER, RULES = (os.path.abspath(path) for path in sys.argv[1:4])
sys.dont_write_bytecode = True
# As it lies here, not where a symlink of the sandbox points to.
sys.path[0] = os.path.join(os.path.dirname(BENCH), "benchmark")
import cases  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position
import truth  # pylint: disable=wrong-import-position
import workers  # pylint: disable=wrong-import-position


def command(*flags):
    return [sys.executable, BENCH, "--worker", WORKER, "--rules", RULES, *flags]


class BenchTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "bench.json"
        self.environment = dict(os.environ, XDG_CACHE_HOME=folder.name)

    def bench(self, *flags):
        return subprocess.run(command(*flags), env=self.environment, text=True,
                              capture_output=True, check=False)

    def test_everything_in_small(self):
        ran = self.bench("--json", str(self.json), "--peers", "none", "--scale",
                         "64", "--rounds", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        measured = json.loads(self.json.read_text())
        self.assertEqual([r["name"] for r in measured["results"]],
                         [case.name for case in cases.make_cases(64)])
        self.assertFalse(measured["interrupted"])
        for result in measured["results"]:
            with self.subTest(result["name"]):
                self.assertGreater(result["cleave_us"], 0)
                self.assertEqual(result["peers"], {})
                self.assertEqual(result["failed"], {})
                self.assertGreaterEqual(result["kernels"], 1)
                # Sums of some 10,000 elements of both signs, which cancel.
                limit = 1e-3 if result["name"] == "sum_axis_0_thin" else 1e-4
                if result["class"] == "halves":
                    limit = 1e-2
                self.assertLess(result["errors"]["cleave"], limit)
                self.assertIn("cleave", result["compile_ms"])
                # The second process found all kernels on disk.
                self.assertEqual(result["compiled_again"], 0)
                self.assertIn(result["name"], ran.stdout)
        plot = xml.etree.ElementTree.parse(self.folder / "bench.svg")
        self.assertTrue(plot.getroot().tag.endswith("svg"))

    def test_one_image_makes_many_tasks(self):
        ran = self.bench("--json", str(self.json), "--peers", "none",
                         "--filter", "^convolution_64$", "--rounds", "1",
                         "--scale", "4", "--threads", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result, = json.loads(self.json.read_text())["results"]
        # The padded image, and the product, which finds its windows there.
        tasks = [loop["tasks"] for loop in result["loops"]]
        self.assertEqual(len(tasks), 2)
        self.assertGreaterEqual(min(tasks), 32)

    def test_predicts_what_tasks_allow(self):
        ran = self.bench("--json", str(self.json), "--peers", "none",
                         "--filter", "^softmax_odd$", "--rounds", "1",
                         "--threads", "1", "--predict", "64")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result, = json.loads(self.json.read_text())["results"]
        loop, = result["loops"]
        self.assertGreater(loop["tasks"], 64)
        self.assertLessEqual(loop["ns"], result["call_ns"])
        # Two thousand rows in tasks of equal parts: a barrier, and no more.
        many = report.predicted_ns(result, 64)
        self.assertGreater(many, result["call_ns"] / 64)
        self.assertLess(many, result["call_ns"] / 16 + 20000)
        self.assertIn("64 cores us", ran.stdout)
        one = dict(result, loops=[{"tasks": 3, "ns": 900}], call_ns=1000)
        self.assertEqual(report.predicted_ns(one, 2), 100 + 600 + 5000)

    def test_peers_that_are_not_installed_are_named(self):
        ran = self.bench("--json", str(self.json), "--filter", "^call",
                         "--rounds", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("torch.compile: not installed (--install-peers)",
                      ran.stderr)
        machine = json.loads(self.json.read_text())["machine"]
        self.assertEqual(set(machine["absent"]),
                         {"numpy", "torch", "torch.compile", "jax"})

    def test_bad_flags(self):
        for flags, said in (
            ((), "--json FILE says where the report goes"),
            (("--json", "x", "--peers", "tensorflow"), "no `tensorflow`"),
            (("--json", "x", "--filter", "("), "--filter:"),
            (("--json", "x", "--filter", "tanh"), "no name has a match"),
            (("--json", "x", "--rounds", "0"), "--rounds"),
            (("--json", "x", "--threads", "2", "--predict", "64"),
             "--threads 1"),
            (("--json", "/no/where/x"), "no folder for /no/where/x"),
        ):
            with self.subTest(flags):
                ran = self.bench(*flags)
                self.assertEqual(ran.returncode, 2)
                self.assertIn(said, ran.stderr)
                self.assertNotIn("Traceback", ran.stderr)

    def test_rules_that_cannot_be_loaded(self):
        ran = self.bench("--json", str(self.json), "--rules",
                         str(self.folder / "none"))
        self.assertEqual(ran.returncode, 2)
        self.assertIn("cleave ended with status 2", ran.stderr)
        self.assertFalse(self.json.exists())

    def test_an_interrupt_keeps_what_was_measured(self):
        with subprocess.Popen(
                command("--json", str(self.json), "--peers", "none",
                        "--scale", "64", "--rounds", "100", "--filter",
                        "^sum_a[^_]*(_[01])?$"), env=self.environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
            self.assertIn("[1/3] sum_axis_0", ran.stderr.readline())
            ran.send_signal(signal.SIGINT)
            ran.communicate(timeout=60)
        self.assertEqual(ran.returncode, 130)
        measured = json.loads(self.json.read_text())
        self.assertTrue(measured["interrupted"])
        self.assertEqual([r["name"] for r in measured["results"]],
                         ["sum_axis_0"])


class WorkerTest(unittest.TestCase):

    def test_a_line_that_is_not_sent_does_not_stop_closing(self):
        with tempfile.TemporaryDirectory() as folder:
            worker = workers.Worker(
                "echo", [sys.executable, "-c", "print('{}', flush=True)\n"
                         "import time\ntime.sleep(60)"],
                pathlib.Path(folder), 1)
            # As where an interrupt comes between writing and sending.
            worker._process.stdin.write("words")  # pylint: disable=protected-access
            worker.close()


class TruthTest(unittest.TestCase):

    def test_errors_are_found(self):
        sample = truth.Sample([0, 2], [0.5, 100.0])
        self.assertEqual(sample.largest_error([0.5, 9, 100.0]), 0)
        self.assertEqual(sample.largest_error([0.25, 9, 100.0]), 0.25)
        self.assertEqual(sample.largest_error([0.5, 9, 101.0]), 0.01)
        self.assertEqual(sample.largest_error([math.nan, 9, 100]), math.inf)

    def test_every_case_has_a_sample_for_each_output(self):
        for case in cases.make_cases(64):
            data = [cases.make_data(a, i) for i, a in enumerate(case.inputs)]
            samples = case.truth(data, [a.shape for a in case.inputs])
            self.assertEqual(len(samples), len(case.outputs), case.name)
            for sample, output in zip(samples, case.outputs):
                self.assertEqual(len(sample.indices), len(sample.values))
                self.assertEqual(max(sample.indices), output.size - 1)
                self.assertEqual(len(set(sample.indices)),
                                 len(sample.indices))


class ReportTest(unittest.TestCase):

    def test_best_peer(self):
        self.assertIsNone(report.best_peer({"peers": {}}))
        self.assertEqual(
            report.best_peer({"peers": {"numpy": 3.0, "jax": 2.0}}),
            ("jax", 2.0))

    def test_plot_escapes_and_survives_failures(self):
        text = report.plot({
            "machine": {"summary": "a < b", "peers": ["jax"]},
            "results": [{
                "name": "f&g", "peers": {"jax": 2.0}, "cleave_us": None,
                "limit_us": 1.0
            }],
        })
        root = xml.etree.ElementTree.fromstring(text)
        words = [e.text for e in root.iter() if e.tag.endswith("text")]
        self.assertIn("f&g", words)
        self.assertIn("a < b", words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
