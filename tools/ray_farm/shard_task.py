"""One shard, as a worker runs it: unpack, run, and hand the report back."""

import collections
import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time

import bundle

# The end of what a shard says on stderr.
STDERR_BYTES = 4000
PR_SET_PDEATHSIG = 1


class ShardLost(Exception):
    """The program was ended by a signal: another try may end otherwise."""


class Board:
    """An actor that is told which shards began where."""

    def __init__(self):
        self.starts = collections.defaultdict(list)

    def begin(self, shard, node, pid, when):
        self.starts[shard].append((node, pid, when))

    def snapshot(self):
        """By shard, (node, process, time) of each start, the last one last."""
        return dict(self.starts)


def die_with(parent):
    """Run in the child: it ends as the worker ends, however that is."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the worker has ended in between


def run_shard(archive, plan, shard, node, board):
    """Returns {"status", "report", "stderr", "seconds", "host"}.

    `node` names where it runs, once it does. Raises ShardLost, which is tried
    again, where the program was killed.
    """
    board.begin.remote(shard, node(), os.getpid(), time.time_ns())
    folder = bundle.unpack_bundle(archive)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        report = os.path.join(work, "report.json")
        arguments = [plan["verb"], *plan["arguments"], "--jobs", "1", "--shard",
                     f"{shard}/{plan['shards']}", "--json", report]
        command, environment, cwd = bundle.command_of(
            folder, plan["cwd"], arguments)
        parent = os.getpid()
        with open(os.path.join(work, "stderr"), "w+b") as err:
            child = subprocess.Popen(
                command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=err, start_new_session=True,
                preexec_fn=lambda: die_with(parent))
            try:
                status = child.wait()
            finally:
                child.kill()
                child.wait()
            err.seek(max(0, err.seek(0, os.SEEK_END) - STDERR_BYTES))
            text = err.read().decode(errors="replace")
        if status < 0:
            raise ShardLost(
                f"shard {shard} on {socket.gethostname()} was ended by "
                f"{signal.Signals(-status).name}: {text}")
        content = ""
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                content = file.read()
    return {"status": status, "report": content, "stderr": text,
            "seconds": time.monotonic() - start,
            "host": socket.gethostname()}
