"""Compares all aten ops that have a rule with PyTorch, and judges what is off.

    report = check_all(["*norm*"])
    print(report)                     # the rows that are off, as a table
    python -m cleave.torch check --all -o off.md

Each row that is off names who is wrong. Derivatives are judged by differences
of PyTorch's kernel in f64, values in f32 by PyTorch's kernel in f64.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import warnings

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from cleave.auditing import Progress
from cleave.torch.check import CheckTable, Row, aten_op, check, detached

SAMPLES = 4


@dataclasses.dataclass
class Report:
    """`tables` has one for each op that was compared, `skipped` the reason why
    another was not. `interrupted` says how far an interrupted run came."""

    tables: list[CheckTable] = dataclasses.field(default_factory=list)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)
    interrupted: str = ""

    @property
    def off(self) -> list[tuple[str, Row]]:
        """The op and the row, of all that is off."""
        return [(t.op, r) for t in self.tables for r in t.off]

    @property
    def ours(self) -> list[tuple[str, Row]]:
        """Those of `off` that are a mistake of the rule."""
        return [(op, r) for op, r in self.off if r.judged == "the rule"]

    def __str__(self) -> str:
        lines = [f"torch {torch.__version__}: {len(self.tables)} ops compared, "
                 f"{len(self.off)} comparisons off, {len(self.ours)} of them "
                 f"by the rule; {len(self.skipped)} ops skipped",
                 "", "| op | off | ulp | at | wrong |", "|---|---|---|---|---|"]
        for op, r in self.off:
            where = r.where.replace("|", "\\|")
            lines.append(f"| `{op}` | {r.subject} | {r.ulp:.2g} | `{where}` | "
                         f"{r.judged} |")
        if self.interrupted:
            lines += ["", self.interrupted]
        return "\n".join(lines)


class _Recorder:
    """Keeps the arguments of the first calls of each op."""

    def __init__(self, ops: dict, most: int):
        self.ops = ops
        self.most = most
        self.calls: dict[str, list] = {name: [] for name in ops}
        self.by_op = {op: name for name, op in ops.items()}
        self.by_function: dict[str, list] = {}
        for name, op in ops.items():
            packet = op._schema.name.partition("::")[2]
            self.by_function.setdefault(packet, []).append(name)

    def note(self, name: str, args, kwargs) -> None:
        """One call; of each pattern of shapes and numbers one is kept."""
        calls = self.calls[name]
        if len(calls) < self.most:
            calls.append((detached(args), detached(kwargs)))

    def note_function(self, function: str, args, kwargs) -> None:
        """A call of a function by its name, where an overload takes it."""
        for name in self.by_function.get(function, ()):
            if len(self.calls[name]) >= self.most:
                continue
            try:
                self.ops[name](*args, **kwargs)
            except Exception:  # noqa: BLE001  it is another overload's
                continue
            self.note(name, args, kwargs)


class _Dispatched(TorchDispatchMode):
    def __init__(self, recorder: _Recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = self.recorder.by_op.get(func)
        if name is not None:
            self.recorder.note(name, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, recorder: _Recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in self.recorder.by_function:
            self.recorder.note_function(name, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def _samples(info, limit: int) -> list:
    for dtype in (torch.float32, torch.int64, torch.bool):
        if dtype in info.supported_dtypes("cpu"):
            torch.manual_seed(0)
            backward = info.supports_autograd and dtype.is_floating_point
            return list(itertools.islice(info.sample_inputs(
                "cpu", dtype, requires_grad=backward), limit))
    return []


def _run(info, sample, recorder: _Recorder) -> None:
    if isinstance(sample.input, torch.Tensor):
        recorder.note_function(info.name.rpartition(".")[2],
                               (sample.input, *sample.args), sample.kwargs)
    with _Functions(recorder), _Dispatched(recorder):
        result = info.op(sample.input, *sample.args, **sample.kwargs)
        results = result if isinstance(result, (tuple, list)) else [result]
        outputs = [o for o in results
                   if isinstance(o, torch.Tensor) and o.requires_grad]
        if outputs:
            torch.autograd.backward(
                outputs, [torch.cos(torch.ones_like(o)) for o in outputs])


def calls_of_samples(ops: dict, limit: int, progress) -> dict[str, list]:
    """Calls of the ops in PyTorch's samples, its backwards included."""
    from torch.testing._internal.common_methods_invocations import op_db
    recorder = _Recorder(ops, 3 * limit)
    packets = [op._schema.name.partition("::")[2] for op in ops.values()]
    for k, info in enumerate(op_db):
        name = info.name.rpartition(".")[2]
        # An op is met in samples of others, too; those of its own name do.
        if not any(name in p or p in name for p in packets):
            continue
        progress(f"samples {k}/{len(op_db)}: {info.name}")
        try:
            samples = _samples(info, limit)
        except Exception:  # noqa: BLE001  it needs what is not installed
            continue
        for sample in samples:
            try:
                _run(info, sample, recorder)
            except Exception:  # noqa: BLE001  a sample that is an error
                continue
    return recorder.calls


def select(rules, patterns, skipped: dict[str, str]) -> dict:
    """The aten ops with a rule whose names fit a pattern, by their names;
    `skipped` gets the reason why others are not compared."""
    chosen = {}
    for name in rules.names("aten"):
        short = name.removeprefix("aten.")
        if patterns and not any(fnmatch.fnmatch(short, p) for p in patterns):
            continue
        try:
            op = aten_op(name)
        except AttributeError:
            skipped[name] = "this version of PyTorch has no such op"
            continue
        if torch.Tag.nondeterministic_seeded in op.tags:
            skipped[name] = "random"
        else:
            chosen[name] = op
    return chosen


def check_all(ops=None, rules=None, samples: int = SAMPLES,
              on_table=None) -> Report:
    """Compares each aten op of `rules` (the shipped ones unless given)
    whose name one of the patterns `ops` fits, all unless given, on some of
    PyTorch's samples. `on_table` is called with each table. Ctrl-C ends it with
    what was found until then."""
    import cleave
    rules = rules or cleave.load()
    patterns = [ops] if isinstance(ops, str) else ops
    report, progress = Report(), Progress()
    chosen = select(rules, patterns, report.skipped)
    done = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calls = calls_of_samples(chosen, samples, progress)
            for done, name in enumerate(chosen):
                progress(f"op {done}/{len(chosen)}: {name}, "
                         f"{len(report.off)} off")
                if not calls[name]:
                    report.skipped[name] = "no sample of PyTorch calls it"
                    continue
                table = check(name, rules, calls[name])
                if any(r.samples for r in table.rows):
                    report.tables.append(table)
                else:
                    report.skipped[name] = next(iter(table.refused), "") \
                        or "nothing to compare"
                if on_table is not None:
                    on_table(table)
    except KeyboardInterrupt:
        report.interrupted = f"interrupted after {done} of {len(chosen)} ops"
    finally:
        progress.done()
    return report


def main(arguments: list[str] | None = None) -> int:
    """The command `python -m cleave.torch check`."""
    import argparse
    parser = argparse.ArgumentParser(
        prog="python -m cleave.torch check", description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", help="names or patterns, '*norm*'")
    parser.add_argument("--all", action="store_true", help="all ops")
    parser.add_argument("--samples", type=int, default=SAMPLES,
                        help="of each of PyTorch's tests (%(default)s)")
    parser.add_argument("--verbose", action="store_true",
                        help="the tables of what agrees, too")
    parser.add_argument("-o", metavar="FILE", help="where the table goes")
    given = parser.parse_args(arguments)
    if not given.ops and not given.all:
        parser.error("name ops, or say --all")

    def show(table: CheckTable) -> None:
        if given.verbose or table.off:
            print(table, flush=True)

    report = check_all(given.ops or None, samples=given.samples, on_table=show)
    for name, why in report.skipped.items():
        print(f"{name}: skipped: {why}")
    if given.o:
        with open(given.o, "w", encoding="utf-8") as file:
            file.write(f"{report}\n")
    else:
        print(report)
    if report.interrupted:
        return 130
    return 1 if report.ours else 0
