#!/usr/bin/python3
"""Runs the farm on clusters whose workers and nodes are killed.

    farm_test.py CHECKER RULES MAIN

Where tools/farm was never run, there is no Ray: the tests are counted as
skipped, and nothing is tested.
"""

import json
import os
import pathlib
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.join(
    pwd.getpwuid(os.getuid()).pw_dir, ".cache")
PYTHON = os.path.join(CACHE, "cleave/farm/bin/python")
if not os.access(PYTHON, os.X_OK):
    with open(__file__, encoding="utf-8") as own:
        COUNT = own.read().count("    def test_")
    print(f"SKIPPED: {COUNT} tests of ray: `tools/farm` was not run on this "
          "machine")
    sys.exit(0)
if os.path.realpath(sys.prefix) != os.path.realpath(
        os.path.dirname(os.path.dirname(PYTHON))):
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.execv(PYTHON, [PYTHON, *sys.argv])

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray  # pylint: disable=wrong-import-position
from ray.cluster_utils import Cluster  # pylint: disable=wrong-import-position

CHECKER, RULES, MAIN = (os.path.abspath(path) for path in sys.argv[1:4])
CHECK = ["check", "rules/core/activation.rules", "--coverage", "--layers",
         "L0,L1,L2,L3,L4"]
SECONDS = 240

SMALL = """language 1

op excess(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 1.5 ulp
  = expm1(x)
"""


def without_seconds(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return re.sub(r'"seconds": [-+.e0-9]+', '"seconds": 0', text)


def wait_until(what, condition, farm=None):
    """What the condition returns at last; `farm` still runs then."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        if farm and farm.poll() is not None:
            raise AssertionError(f"the farm ended before: {what}: "
                                 f"{farm.communicate()}")
        time.sleep(0.05)
    raise AssertionError(f"not within {SECONDS} s: {what}")


def child_of(pid):
    """The program that a worker runs; None where it runs none."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/comm", encoding="utf-8") as name:
                    if name.read().strip() == "cleave":
                        return int(child)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


class FarmTest(unittest.TestCase):
    def setUp(self):
        # Paths of sockets are short.
        folder = tempfile.TemporaryDirectory(dir="/tmp", prefix="farm-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {
            **os.environ, "CLEAVE_CHECKER": CHECKER, "CLEAVE_RULES": "rules",
            "CLEAVE_FARM": str(self.folder / "farm"), "CLEAVE_CACHE": "",
            "TMPDIR": str(self.folder)}

    def start(self, *arguments):
        return subprocess.Popen(
            [PYTHON, MAIN, *arguments], env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True)

    def finish(self, process, status=0):
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, status, out + err)
        return out, err

    def whole(self, *arguments):
        """What one run prints; its report is whole.json."""
        done = subprocess.run(
            [CHECKER, *arguments, "--json", str(self.folder / "whole.json")],
            env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def assert_reports_are_equal(self):
        self.assertEqual(without_seconds(self.folder / "farm.json"),
                         without_seconds(self.folder / "whole.json"))

    def cluster(self):
        """Two nodes of one core each on this machine, and the second."""
        cluster = Cluster(initialize_head=True, head_node_args={
            "num_cpus": 1, "include_dashboard": False,
            "temp_dir": str(self.folder / "ray"),
            "object_store_memory": 100 << 20})
        self.addCleanup(cluster.shutdown)
        # Another address, so that drivers are at the first.
        second = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.2",
                                  object_store_memory=100 << 20)
        ray.init(address=cluster.address, namespace="cleave-farm",
                 log_to_driver=False)
        self.addCleanup(ray.shutdown)
        return cluster, second

    def starts(self):
        """By shard, where it began, as the farm's own board says."""
        try:
            board = ray.get_actor("run")
            return ray.get(board.snapshot.remote(), timeout=10)
        except (ValueError, ray.exceptions.RayError):
            return {}

    def stop_at(self, node):
        """Stops a program there: (shard, process of its worker, its own).

        So it does not end before the test ends it.
        """
        for shard, starts in self.starts().items():
            where, pid, _ = starts[-1]
            if where != node or not os.path.exists(f"/proc/{pid}"):
                continue
            child = child_of(pid)
            if child is None:
                continue
            try:
                os.kill(child, signal.SIGSTOP)
            except ProcessLookupError:
                continue
            return shard, pid, child
        return None

    def test_a_worker_and_a_node_die(self):
        whole = self.whole(*CHECK, "--all")
        cluster, second = self.cluster()
        farm = self.start(*CHECK, "--shards", "8", "--address", cluster.address,
                          "--folder", str(self.folder / "run"),
                          "--json", str(self.folder / "farm.json"))
        shard, pid, child = wait_until(
            "a shard begins on the second node",
            lambda: self.stop_at(second.node_id), farm)
        os.kill(pid, signal.SIGKILL)
        wait_until("the program ends as its worker does",
                   lambda: not os.path.exists(f"/proc/{child}"))
        wait_until("the shard begins again",
                   lambda: len(self.starts().get(shard, [])) == 2, farm)
        wait_until("a shard runs on the second node",
                   lambda: self.stop_at(second.node_id), farm)
        cluster.remove_node(second, allow_graceful=False)
        out, err = self.finish(farm)
        self.assertEqual(out, whole)
        self.assert_reports_are_equal()
        self.assertRegex(err, r"8 shards on \d hosts?, [2-9] tried again")
        self.assertEqual(
            sorted(path.name for path in (self.folder / "run").iterdir()),
            ["plan.json"] + [f"shard-{i}-of-8.json" for i in range(1, 9)])

    def test_an_interrupted_run_goes_on(self):
        self.whole(*CHECK, "--all")
        farm = self.start(*CHECK, "--shards", "6", "--local", "--cpus", "2",
                          "--json", str(self.folder / "first.json"))
        folder = self.folder / "farm"
        kept = wait_until("a shard is done",
                          lambda: list(folder.glob("*/shard-*.json")), farm)
        written = kept[0].stat().st_mtime_ns
        begin = time.monotonic()
        os.killpg(farm.pid, signal.SIGINT)  # as a terminal does
        _, err = self.finish(farm, status=130)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertRegex(err, r"interrupted: [1-5] of 6 shards are done")
        self.assertFalse((self.folder / "first.json").exists())
        self.assertEqual(kept[0].stat().st_mtime_ns, written)
        # The run has its rules: it does not matter what became of them.
        _, err = self.finish(self.start(
            "--resume", str(kept[0].parent), "--local", "--cpus", "2",
            "--json", str(self.folder / "farm.json")))
        self.assertRegex(err, r"[1-5] shards to run")
        self.assert_reports_are_equal()
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_shard_that_fails_is_said_and_can_be_run_again(self):
        self.whole(*CHECK, "--all")
        cluster, _ = self.cluster()
        run = str(self.folder / "run")
        farm = self.start(*CHECK, "--shards", "4", "--retries", "0",
                          "--address", cluster.address, "--folder", run)
        head = cluster.head_node.node_id
        shard, _, child = wait_until("a shard runs",
                                     lambda: self.stop_at(head), farm)
        os.kill(child, signal.SIGKILL)
        _, err = self.finish(farm, status=2)
        self.assertIn(f"farm: shard {shard} failed: ", err)
        self.assertIn("was ended by SIGKILL", err)
        self.assertIn(f"1 of 4 shards failed ({run}/ray.log); go on with "
                      f"tools/farm --resume {run}", err)
        self.finish(self.start("--resume", run, "--address", cluster.address,
                               "--json", str(self.folder / "farm.json")))
        self.assert_reports_are_equal()

    def test_mutants_are_farmed(self):
        small = self.folder / "small.rules"
        small.write_text(SMALL, encoding="utf-8")
        mutate = ["mutate", os.path.relpath(small), "--draws", "8"]
        self.whole(*mutate)
        self.finish(self.start(*mutate, "--local", "--cpus", "2", "--shards",
                               "3", "--json", str(self.folder / "farm.json")))
        self.assert_reports_are_equal()

    def test_mistakes_are_told(self):
        wrong = self.folder / "wrong.rules"
        wrong.write_text("language 1\n\nop f(x: T[n] -> T[n] = x\n",
                         encoding="utf-8")
        _, err = self.finish(self.start("check", str(wrong), "--local"),
                             status=2)
        self.assertIn("wrong.rules:3:14: error: ", err)
        self.assertEqual(list((self.folder / "farm").iterdir()), [])
        for arguments, message in [
                (["check", "rules", "--kernels"], "--kernels: L6 is not"),
                (["check", "rules", "--shard=1/2"], "--shard=1/2: the farm"),
                (["--resume", str(self.folder)], "no run to go on with"),
                ([], "what is to run"),
                (["mutate", "--shards", "0"], "invalid positive value: '0'"),
                (["check", "rules", "--local", "--address", "here"],
                 "--local or --address")]:
            with self.subTest(arguments=arguments):
                _, err = self.finish(self.start(*arguments), status=2)
                self.assertIn(message, err)
        run = self.folder / "run"
        run.mkdir()
        plan = {"verb": "check", "arguments": [], "cwd": "/", "shards": 2,
                "bundle": "0"}
        (run / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        (run / "bundle.tar.gz").write_bytes(b"")
        _, err = self.finish(self.start("--resume", str(run)), status=2)
        self.assertIn("bundle.tar.gz is damaged", err)
        (run / "plan.json").write_text("{", encoding="utf-8")
        _, err = self.finish(self.start("--resume", str(run)), status=2)
        self.assertIn("plan.json is damaged", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
