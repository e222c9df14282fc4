"""Runs `cleave check` or `cleave mutate` in shards, each as a task of Ray, and
prints and writes what one run would have. ARGUMENTs are those of the verb, as
`tools/cleave VERB --help` lists them; files and folders among them are shipped
to the workers, with the program. A worker or a node that dies costs the shards
that it was at, which are tried again elsewhere. An interrupt loses none that is
done: --resume goes on.

Exits as the verb would, or with 2 where a shard failed, or 130 where an
interrupt ended it.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
# pylint: disable=wrong-import-position
import bundle
import shard_task

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Local memory for the archive and the reports.
OBJECT_STORE_BYTES = 256 << 20
SHARDS_PER_CPU = 4
# The namespace of the actors, which tests look for.
NAMESPACE = "cleave-farm"
RAY_LOG = "ray.log"
INTERRUPTED = 130
FAILED = 2
# The farm gives these itself, or the merged report has no such thing.
REFUSED = {
    "--shard": "the farm divides the run (--shards)",
    "--jobs": "each shard has one core",
    "--report": "a page is not merged: `cleave check --report` writes it",
    "--certify": "certificates are not merged",
    "--certificates": "a farm takes no certificates, and keeps none",
    "--sample-seed": "a farm takes no certificates, and keeps none",
    "--oracle": "an oracle is for one op alone",
    "--kernels": "L6 is not shipped: the generator of code is not",
}


def positive(word):
    number = int(word)
    if number < 1:
        raise ValueError
    return number


def parse_flags(words):
    parser = argparse.ArgumentParser(
        prog="tools/farm", usage="tools/farm VERB [ARGUMENT..] [FLAG..]",
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", nargs="?", choices=["check", "mutate"],
                        help="what to run")
    parser.add_argument("--shards", type=positive, metavar="N",
                        help="parts of the run (%d for each core of the "
                        "cluster)" % SHARDS_PER_CPU)
    parser.add_argument("--address", metavar="ADDRESS",
                        help="of the cluster: `ray://HOST:10001`, `HOST:6379` "
                        "on one of its nodes (that of $RAY_ADDRESS or of this "
                        "machine; one is started here where there is none)")
    parser.add_argument("--local", action="store_true",
                        help="start a cluster on this machine, whatever there "
                        "is")
    parser.add_argument("--cpus", type=positive, metavar="N",
                        default=len(os.sched_getaffinity(0)),
                        help="cores of a cluster that is started here "
                        "(%(default)s)")
    parser.add_argument("--retries", type=int, metavar="N", default=5,
                        help="tries of a shard whose worker died, after the "
                        "first (%(default)s)")
    parser.add_argument("--folder", metavar="DIR",
                        help="where the reports of shards are kept (one below "
                        "$CLEAVE_FARM, which is removed when all is merged)")
    parser.add_argument("--resume", metavar="DIR",
                        help="go on with the run of that folder, with its "
                        "program, its rules and its arguments")
    parser.add_argument("--json", metavar="FILE", help="the merged report")
    flags, flags.arguments = parser.parse_known_args(words)
    if flags.resume:
        if flags.verb or flags.arguments or flags.shards or flags.folder:
            parser.error("--resume has its arguments in its folder")
    elif not flags.verb:
        parser.error("what is to run, `check` or `mutate`?")
    if flags.local and flags.address:
        parser.error("--local or --address")
    for argument in flags.arguments:
        why = REFUSED.get(argument.split("=")[0])
        if why:
            parser.error(f"{argument}: {why}")
    return flags


# Ours, while what Ray prints goes to its log.
STDERR = os.fdopen(os.dup(2), "w", buffering=1)


def complain(message):
    print(f"farm: {message}", file=STDERR, flush=True)


@contextlib.contextmanager
def output_in(path):
    """What Ray prints, on stdout even, goes to that file."""
    kept = os.dup(1), os.dup(2)
    with open(path, "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        for end, stream in zip(kept, (sys.stdout, sys.stderr)):
            stream.flush()
            os.dup2(end, stream.fileno())
            os.close(end)


def write(path, content):
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)


class Run:
    """A plan, and the folder that has it with the reports of its shards."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.plan = None
        self.archive = None

    @classmethod
    def new(cls, flags):
        folder = flags.folder or os.path.join(
            os.environ["CLEAVE_FARM"],
            time.strftime("%Y%m%d-%H%M%S-") + str(os.getpid()))
        run = cls(folder)
        if (run.folder / "plan.json").exists():
            raise OSError(f"{folder} has a run: --resume {folder} goes on with "
                          "it")
        arguments = list(flags.arguments)
        run.archive, arguments = bundle.make_bundle(
            os.environ["CLEAVE_CHECKER"], os.environ["CLEAVE_RULES"], arguments)
        if flags.verb == "check":
            arguments.append("--all")
        run.plan = {"verb": flags.verb, "arguments": arguments,
                    "cwd": os.getcwd(), "shards": flags.shards,
                    "bundle": bundle.digest_of(run.archive)}
        run.folder.mkdir(parents=True, exist_ok=True)
        return run

    @classmethod
    def resumed(cls, folder):
        run = cls(folder)
        try:
            run.plan = json.loads((run.folder / "plan.json").read_bytes())
            run.archive = (run.folder / "bundle.tar.gz").read_bytes()
            digest = run.plan["bundle"]
            _ = run.plan["verb"], run.plan["arguments"], run.plan["cwd"]
            _ = int(run.plan["shards"])
        except FileNotFoundError as error:
            raise OSError(f"{folder} has no run to go on with: no "
                          f"{os.path.basename(error.filename)}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise OSError(f"{folder}/plan.json is damaged: {error}") from error
        if bundle.digest_of(run.archive) != digest:
            raise OSError(f"{folder}/bundle.tar.gz is damaged")
        return run

    def keep_plan(self, shards):
        """From here on an interrupted run can go on."""
        self.plan["shards"] = self.plan["shards"] or shards
        write(self.folder / "bundle.tar.gz", self.archive)
        write(self.folder / "plan.json", json.dumps(self.plan).encode())

    def report_of(self, shard):
        return self.folder / f"shard-{shard}-of-{self.plan['shards']}.json"

    def left(self):
        """The shards without a report that can be read."""
        shards = []
        for shard in range(1, self.plan["shards"] + 1):
            try:
                json.loads(self.report_of(shard).read_bytes())
            except (FileNotFoundError, ValueError):
                shards.append(shard)
        return shards

    def keep(self, shard, report):
        json.loads(report)
        write(self.report_of(shard), report.encode())

    def merge(self, json_path):
        """Prints and writes the merged report; returns the exit status."""
        arguments = ["merge"]
        given = iter(self.plan["arguments"])
        for argument in given:
            if argument == "--allow":
                arguments += [argument, next(given, "")]
            elif argument.startswith("--allow="):
                arguments.append(argument)
        arguments += [os.path.abspath(self.report_of(shard))
                      for shard in range(1, self.plan["shards"] + 1)]
        if json_path:
            arguments += ["--json", os.path.abspath(json_path)]
        command, environment, cwd = bundle.command_of(
            bundle.unpack_bundle(self.archive), self.plan["cwd"], arguments)
        return subprocess.run(command, env=environment, cwd=cwd,
                              check=False).returncode

    def done(self):
        """All is merged."""
        if self.folder.parent == pathlib.Path(os.environ["CLEAVE_FARM"]):
            shutil.rmtree(self.folder)
        else:
            (self.folder / "bundle.tar.gz").unlink()
            (self.folder / RAY_LOG).unlink()


class Progress:
    """What is done, on a terminal as one line, else a line for each shard."""

    def __init__(self, run, left):
        self.shards = run.plan["shards"]
        self.done = self.shards - len(left)
        self.failed = {}
        self.starts = collections.defaultdict(set)
        self.again = 0
        self.running = 0
        self.work = 0.0
        self.hosts = set()
        self.start = time.monotonic()
        self.terminal = STDERR.isatty()

    def line(self):
        return (f"[{self.done}/{self.shards}] {self.running} running, "
                f"{self.again} tried again, {len(self.failed)} failed, "
                f"{time.monotonic() - self.start:.0f} s")

    def show(self, what=""):
        if self.terminal:
            print(f"\r\033[K{self.line()}", end="", file=STDERR, flush=True)
        elif what:
            print(f"{self.line()}; {what}", file=STDERR, flush=True)

    def look_at(self, starts, pending):
        """`starts` is a snapshot of the Board."""
        # One whose node is gone begins anew, and knows less.
        for shard, all_of_one in starts.items():
            self.starts[shard].update(all_of_one)
        self.again = sum(len(each) - 1 for each in self.starts.values())
        self.running = len(set(self.starts) & pending)

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", file=STDERR, flush=True)


def connect(ray, flags):
    """Joins the cluster, or starts one."""
    common = {"log_to_driver": False, "logging_level": "ERROR",
              "namespace": NAMESPACE}
    own = {"num_cpus": flags.cpus, "include_dashboard": False,
           "object_store_memory": OBJECT_STORE_BYTES}
    if flags.local:
        ray.init(address="local", **own, **common)
    elif flags.address:
        ray.init(address=flags.address, **common)
    else:
        try:
            ray.init(address="auto", **common)
        except ConnectionError:
            ray.init(address="local", **own, **common)


def node_of_task():
    import ray  # pylint: disable=import-outside-toplevel
    return ray.get_runtime_context().get_node_id()


def beside_the_driver(ray):
    """On the driver's node, which outlives the others for it."""
    if ray.util.client.ray.is_connected():
        return None  # that is none of the cluster
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True)


def farm(ray, run, flags):
    """Runs the shards that are left. Returns what became of them."""
    for module in (bundle, shard_task):
        ray.cloudpickle.register_pickle_by_value(module)
    cores = int(ray.cluster_resources().get("CPU", 1))
    run.keep_plan(SHARDS_PER_CPU * cores)
    left = run.left()
    progress = Progress(run, left)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    progress.show(f"{len(left)} shards to run on {cores} cores of "
                  f"{len(nodes)} nodes, kept in {run.folder}")
    archive = ray.put(run.archive)
    board = ray.remote(shard_task.Board).options(
        name=run.folder.name, num_cpus=0, max_restarts=-1,
        scheduling_strategy=beside_the_driver(ray)).remote()
    task = ray.remote(shard_task.run_shard).options(
        num_cpus=1, max_retries=flags.retries, retry_exceptions=True)
    pending = {task.remote(archive, run.plan, shard, node_of_task, board): shard
               for shard in left}
    snapshot = None
    try:
        while pending:
            done, _ = ray.wait(list(pending), timeout=0.5)
            for reference in done:
                take(ray, run, progress, pending.pop(reference), reference)
            if snapshot is None:
                snapshot = board.snapshot.remote()
            elif ray.wait([snapshot], timeout=0)[0]:
                try:
                    progress.look_at(ray.get(snapshot), set(pending.values()))
                except ray.exceptions.RayError:
                    pass  # its node is gone: it begins anew on another
                snapshot = None
            progress.show()
    except (KeyboardInterrupt, Usage):
        for reference in pending:
            ray.cancel(reference, force=True)
        raise
    finally:
        progress.clear()
    return progress


class Usage(Exception):
    """The verb refuses its arguments or its rules: so do all shards."""


def take(ray, run, progress, shard, reference):
    """Keeps the report of a shard that has ended, or why there is none."""
    try:
        result = ray.get(reference)
    except ray.exceptions.RayError as error:
        progress.failed[shard] = str(error).strip().splitlines()[-1]
        progress.show(f"shard {shard} failed: {progress.failed[shard]}")
        return
    if result["status"] == 2:
        raise Usage(result["stderr"])
    if result["status"] not in (0, 1) or not result["report"]:
        progress.failed[shard] = (
            f"exit status {result['status']} on {result['host']}: "
            f"{result['stderr'].strip()}")
        progress.show(f"shard {shard} failed: {progress.failed[shard]}")
        return
    run.keep(shard, result["report"])
    progress.done += 1
    progress.work += result["seconds"]
    progress.hosts.add(result["host"])
    progress.show(f"shard {shard} done on {result['host']}, "
                  f"{result['seconds']:.1f} s")


def main():
    flags = parse_flags(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    try:
        run = Run.resumed(flags.resume) if flags.resume else Run.new(flags)
    except OSError as error:
        complain(error)
        return FAILED
    again = f"tools/farm --resume {run.folder}"
    import ray  # pylint: disable=import-outside-toplevel
    # pylint: disable-next=import-outside-toplevel
    import ray.util.scheduling_strategies
    try:
        with output_in(run.folder / RAY_LOG):
            connect(ray, flags)
            progress = farm(ray, run, flags)
            ray.shutdown()
    except KeyboardInterrupt:
        # No second one may cut short what ends here.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        complain(f"interrupted: {run.plan['shards'] - len(run.left())} of "
                 f"{run.plan['shards']} shards are done; go on with {again}"
                 if run.plan["shards"] else "interrupted: nothing was begun")
        with output_in(os.devnull):
            ray.shutdown()
        os._exit(INTERRUPTED)
    except Usage as error:
        STDERR.write(str(error))
        with output_in(os.devnull):
            ray.shutdown()
        shutil.rmtree(run.folder, ignore_errors=True)
        return FAILED
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        complain(f"the cluster is gone: {error}")
        complain(f"{run.folder / RAY_LOG} has what Ray says; go on with "
                 f"{again}")
        return FAILED
    for shard, why in sorted(progress.failed.items()):
        complain(f"shard {shard} failed: {why}")
    if progress.failed:
        complain(f"{len(progress.failed)} of {run.plan['shards']} shards "
                 f"failed ({run.folder / RAY_LOG}); go on with {again}")
        return FAILED
    status = run.merge(flags.json)
    complain(f"{run.plan['shards']} shards on {len(progress.hosts)} hosts, "
             f"{progress.again} tried again: {progress.work:.0f} s of work in "
             f"{time.monotonic() - progress.start:.0f} s")
    if status in (0, 1):
        run.done()
    return status


if __name__ == "__main__":
    sys.exit(main())
