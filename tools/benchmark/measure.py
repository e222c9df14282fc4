"""One case on all contestants: verified, then timed in turns."""

import statistics
import sys
import time

import cases
import workers

# The time that one contestant may take of a round, and the least of one sample:
# the clock itself takes some ten nanoseconds.
_TURN_NS = 15e6
_SAMPLE_NS = 20e3
_MOST_SAMPLES = 25
# Before each turn, in seconds: threads of the last one are still falling
# asleep.
_PAUSE = 0.004


class Bench:
    """The contestants, Cleave first, and the files that they share."""

    def __init__(self, cleave, peers, folder, rounds):
        self.cleave = cleave
        self.contestants = [cleave] + peers
        self.folder = folder
        self.rounds = rounds
        self._data = {}

    def data(self, case):
        """[(file name, elements)] of the inputs; written once."""
        result = []
        for seed, what in enumerate(case.inputs):
            key = (what, seed)
            if key not in self._data:
                path = f"input{len(self._data)}.bin"
                elements = cases.make_data(what, seed)
                (self.folder / path).write_bytes(
                    cases.to_bytes(what, elements))
                self._data[key] = path, elements
            result.append(self._data[key])
        return result

    def _words(self, case):
        for (path, _), what in zip(self.data(case), case.inputs):
            yield f"{path}:{what.dtype}:{'x'.join(map(str, what.shape))}"

    def prepare(self, worker, case):
        return worker.ask("prepare", case.name, case.function, case.transform,
                          *self._words(case))

    def first_compile_ns(self):
        """Of some function, before any case."""
        some = cases.f32(2, 3)
        first = cases.Case("first", "overhead", "multiply_add", (some, some),
                           (some,), None)
        return self.prepare(self.cleave, first)["compile_ns"]

    def error(self, worker, case, samples):
        """How far the outputs of one run are off."""
        paths = [
            f"{worker.name}.output{i}.bin" for i in range(len(case.outputs))
        ]
        worker.ask("store", case.name, *paths)
        largest = 0.0
        for path, what, sample in zip(paths, case.outputs, samples):
            output = cases.from_bytes(what, (self.folder / path).read_bytes())
            (self.folder / path).unlink()
            if len(output) != what.size:
                raise workers.WorkerError(
                    f"{worker.name}: {len(output)} elements, not {what.size}")
            largest = max(largest, sample.largest_error(output))
        return largest

    def measure(self, case, say):
        """The entry of the report. Whoever fails, or is wrong, is named in it
        and not timed."""
        result = {
            "name": case.name,
            "shape": case.shape,
            "class": case.group,
            "bytes": case.bytes,
            "cleave_us": None,
            "limit_us": None,
            "peers": {},
            "compile_ms": {},
            "errors": {},
            "absent": {},
            "failed": {},
        }
        elements = [data for _, data in self.data(case)]
        samples = case.truth(elements, [a.shape for a in case.inputs])
        ready = []
        for worker in self.contestants:
            say(f"{case.name}: {worker.name} compiles")
            try:
                answer = self.prepare(worker, case)
                error = self.error(worker, case, samples)
            except workers.NotThere as absent:
                result["absent"][worker.name] = str(absent)
                continue
            except workers.WorkerError as failure:
                result["failed"][worker.name] = str(failure)
                continue
            if "compile_ns" in answer:
                result["compile_ms"][worker.name] = answer["compile_ns"] / 1e6
            if worker is self.cleave:
                result.update({
                    key: answer[key]
                    for key in ("kernels", "steps", "reference",
                                "parallel_loops", "loops", "call_ns",
                                "allocations", "allocated_bytes")
                })
            result["errors"][worker.name] = error
            if not error <= case.tolerance:
                result["failed"][worker.name] = (
                    f"wrong: off by {error:.3g}, more than {case.tolerance:.3g}"
                )
                continue
            ready.append(worker)
        self._time(case, ready, result, say)
        for worker in self.contestants:
            try:
                worker.ask("release", case.name)
            except workers.WorkerError:
                pass  # it is in `failed`, if it was needed
        return result

    def _time(self, case, ready, result, say):
        turns = [(worker.name, self._turn(worker, case)) for worker in ready]
        if case.group != "overhead":
            turns.append(("memcpy", self._copy(case.bytes // 2)))
        times = {name: [] for name, _ in turns}
        for r in range(self.rounds):
            say(f"{case.name}: round {r + 1} of {self.rounds}")
            # Whoever comes first in a round is another one in the next.
            shift = r % len(turns)
            for name, turn in turns[shift:] + turns[:shift]:
                time.sleep(_PAUSE)
                times[name].append(statistics.median(turn()))
        medians = {
            name: statistics.median(values) / 1e3
            for name, values in times.items()
        }
        result["rounds_us"] = {
            name: [round(v / 1e3, 4) for v in values]
            for name, values in times.items()
        }
        cleave = self.cleave.name
        result["limit_us"] = medians.pop("memcpy", None)
        if cleave in medians:
            result["cleave_us"] = medians.pop(cleave)
            # How many times faster Cleave is.
            result["ratios"] = {
                name: statistics.median(
                    other / own
                    for other, own in zip(values, times[cleave]))
                for name, values in times.items()
                if name != cleave
            }
            if case.flops:
                result["gflops"] = case.flops / result["cleave_us"] / 1e3
        result["peers"] = medians

    @staticmethod
    def _turn(worker, case):
        first, = worker.ask("run", case.name, 1, 1)["ns"]
        first, = worker.ask("run", case.name, 1,
                            max(1, int(_SAMPLE_NS / max(first, 1))))["ns"]
        calls = max(1, int(_SAMPLE_NS / max(first, 1)))
        samples = int(_TURN_NS / (first * calls))
        samples = min(max(samples, 3), _MOST_SAMPLES)
        return lambda: worker.ask("run", case.name, samples, calls)["ns"]

    def _copy(self, size):
        first = self.cleave.ask("copy", size, 3)["ns"][-1]
        samples = min(max(int(_TURN_NS / max(first, 1)), 3), _MOST_SAMPLES)
        return lambda: self.cleave.ask("copy", size, samples)["ns"]


class Progress:
    """One line that changes, on a terminal; else nothing."""

    def __init__(self):
        self._terminal = sys.stderr.isatty()

    def __call__(self, line):
        if self._terminal:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
