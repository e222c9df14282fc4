"""Decompositions that others wrote, held to our ops: what both audits share.

    audit = Audit(["f64", "f32"])
    audit.compare("Softplus", "18", "f32", [[Comparison(graph, function)]])
    print(audit.table())

A comparison is a call of an op of ours as a graph, and what is to mean the same:
a graph, whose primitives are interpreted, or a function of arrays. The checker
draws inputs for the graph, and judges each value against the graph over the
reals (testing/check/compare/host_tolerance.h).

`python -m cleave.onnx audit` and `python -m cleave.torch audit` are the two.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .checking import Oracle, check
from .errors import Error, UnimplementedError
from .graphs import Graph
from .hosts import numpy_dtype
from .types import TensorType

DTYPES = ("f64", "f32", "f16", "bf16")
AGREES = "agrees"
OFF = "off"
INCONCLUSIVE = "inconclusive"
NOBODY = "nobody knows why"
# The side whose mistake a difference is: nobody's where both readings stand.
THEIRS, OURS, CONVENTION = "theirs", "ours", "convention"
NOT_COMPARED = "not compared"
# The kinds of findings, the grave ones first, as the checker has them.
_KINDS = ("crash", "call", "discrete", "not finite", "special", "lost NaN", "inaccurate")


@dataclasses.dataclass
class Comparison:
    """One call: our graph, and the function that is to mean the same."""

    ours: Graph
    theirs: Oracle
    # "f32[n], beta: 2".
    call: str = ""

    def without(self, name: str) -> Comparison:
        """The same without an input whose values do not matter: it is 1."""
        types = self.ours.inputs
        at = [n for n, _ in types].index(name)
        given = [kind for k, (_, kind) in enumerate(types) if k != at]
        unread = types[at][1]
        known = {str(s) for kind in given for s in kind.shape}
        for size in unread.shape:
            if not isinstance(size, int) and str(size) not in known:
                raise UnimplementedError(
                    f"the size {size} of `{name}` is no other input's",
                    code=12)
        theirs = self.theirs
        if isinstance(theirs, Graph):
            function: Oracle = fixed(theirs, at)
        else:
            def function(*arrays: Any, **attributes: Any) -> Any:
                import numpy
                shape = sizes_of(unread, given, arrays)
                one = numpy.ones(shape, numpy_dtype(unread.dtype))
                return theirs(*arrays[:at], one, *arrays[at:], **attributes)
        return Comparison(fixed(self.ours, at), function, self.call)


def fixed(graph: Graph, at: int) -> Graph:
    """The graph with ones in the place of an input."""
    builder = graph.rules.builder()
    values = [builder.constant(1, kind) if k == at else
              builder.input(name, kind)
              for k, (name, kind) in enumerate(graph.inputs)]
    results = builder.inline(graph, values)
    return builder.finish({name: value for (name, _), value
                           in zip(graph.outputs, results)})


def sizes_of(wanted: TensorType, types: list[TensorType],
             arrays: Iterable[Any]) -> list[int]:
    """The shape of a type, by those that others have."""
    sizes: dict[str, int] = {}
    for kind, array in zip(types, arrays):
        sizes.update((str(s), n) for s, n in zip(kind.shape, array.shape))
    return [s if isinstance(s, int) else sizes[str(s)] for s in wanted.shape]


@dataclasses.dataclass
class Finding:
    """One way in which a function is off, at its clearest."""

    kind: str
    count: int
    ulp: float
    call: str
    inputs: str
    expected: str
    got: str
    what: str = ""

    def brief(self) -> str:
        """`inf`, `NaN for 0`, `3e+04 ulp`."""
        if self.kind == "crash":
            return self.got
        if self.kind == "call":
            return "error"
        if self.kind == "discrete":
            return f"{self.got} for {self.expected}"
        if self.kind == "not finite":
            return self.got
        if self.kind in ("special", "lost NaN"):
            return f"{self.got} for {self.expected}"
        if math.isinf(self.ulp):
            return "not 0"
        return f"{self.ulp:.1g} ulp".replace("e+0", "e")

    def where(self) -> str:
        """`x = 90: inf for 90`."""
        return f"{self.inputs}: {self.got} for {self.expected}"


@dataclasses.dataclass
class Row:
    """What was found of one function of an op in one dtype."""

    op: str
    subject: str
    dtype: str
    verdict: str = NOT_COMPARED
    why: str = ""
    calls: int = 0
    samples: int = 0
    # The largest error of what agrees, as a part of its bound.
    part: float = 0.0
    findings: list[Finding] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def cell(self) -> str:
        """A few words for a table."""
        if self.verdict != OFF:
            return self.verdict
        return ", ".join(f.brief() for f in self.findings)


@dataclasses.dataclass
class Cause:
    """Why functions are off, as somebody found out, and whose mistake it is.
    The first that fits an op, a subject and a kind of finding counts."""

    ops: str  # patterns of names, separated by spaces
    subjects: str  # of subjects, and
    wrong: str
    why: str
    kinds: str = "*"  # of kinds, separated by commas

    def fits(self, row: Row, finding: Finding) -> bool:
        """Whether it is the cause of what was found."""
        return (_fits(row.op, self.ops.split())
                and _fits(row.subject, self.subjects.split(","))
                and _fits(finding.kind, self.kinds.split(",")))


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p.strip()) for p in patterns)


def _number(text: str) -> str:
    """`9e+01 (0x1.68p+6), over the reals 90` as `90`."""
    text = text.partition(", over the reals")[0]
    text = re.sub(r" \([^()]*\)$", "", text.strip())
    return re.sub(r"[-+]?\b\d[\d.]*(e[-+]\d+)?\b",
                  lambda m: f"{float(m[0]):.8g}",
                  text).replace("-nan", "nan").replace("nan", "NaN")


def _inputs(text: str) -> str:
    """The inputs of a counterexample without their hexadecimal twins."""
    text = re.sub(r" \([^()]*0x[^()]*\)", "", text)
    text = re.sub(r" \((\[?(nan|-?inf)[^()]*)\)", "", text)
    return re.sub(r"(?<![\w.])-?\d[\d.]*e[-+]\d+",
                  lambda m: f"{float(m[0]):.8g}", text).replace("nan", "NaN")


def _finding(entry: Mapping[str, Any]) -> Finding:
    example = entry["counterexample"]
    inputs = entry.get("worst_at", "")
    # JSON has no infinity, which is the error of what is to be 0 in f64.
    ulp = entry.get("worst_ulp", math.inf) if entry["kind"] == "inaccurate" \
        else example.get("ulp", math.inf)
    return Finding(
        entry["kind"], entry["count"], ulp,
        example["call"], _inputs(example["inputs"] or inputs),
        _number(example["expected"]), _number(example["got"]),
        example["what"])


class Audit:
    """Rows by op, subject and dtype; `not_compared` has what could not be, and
    the reason."""

    def __init__(self, causes: Iterable[Cause] = (), seed: int = 1,
                 threads: int = 0, seconds: float = 0.0,
                 on_row: Callable[[Row], None] | None = None) -> None:
        self.rows: list[Row] = []
        self.causes = list(causes)
        self.seed = seed
        self.threads = threads
        self.seconds = seconds
        self.on_row = on_row
        self.title = ""
        self.column = "of"  # what a table calls the subjects
        self.interrupted = ""

    def skip(self, op: str, subject: str, why: str, dtype: str = "") -> None:
        """A row for what could not be compared."""
        self._add(Row(op, subject, dtype, why=why))

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        if self.on_row is not None:
            self.on_row(row)

    def compare(self, op: str, subject: str, dtype: str,
                calls: list[list[Comparison]],
                problems: Iterable[str] = ()) -> None:
        """Compares all calls, and adds the row."""
        self._add(self.row(op, subject, dtype, calls, problems))

    def row(self, op: str, subject: str, dtype: str,
            calls: list[list[Comparison]],
            problems: Iterable[str] = ()) -> Row:
        """What is found of all calls. A call is one comparison or several: the
        first that can be made counts. `problems` say why other calls are
        none."""
        row = Row(op, subject, dtype, calls=len(calls))
        begin = time.monotonic()
        found: dict[str, Finding] = {}
        lacking = []
        for comparison, verdict in self._judged(calls):
            row.samples += verdict.get("samples", 0)
            kind = verdict["verdict"]
            if kind == "disagrees":
                for entry in verdict["findings"]:
                    _add(found, _finding(entry), comparison.call)
            elif kind != "agrees":
                lacking.append(verdict.get("why", kind))
            row.part = max(row.part, verdict.get("worst_part_of_bound", 0.0))
        row.findings = sorted(found.values(),
                              key=lambda f: _KINDS.index(f.kind))
        if found:
            row.verdict = OFF
        elif len(lacking) < len(calls):
            row.verdict = AGREES
        else:
            row.verdict = INCONCLUSIVE
        row.why = "; ".join(dict.fromkeys([*lacking, *problems]))
        row.seconds = round(time.monotonic() - begin, 2)
        return row

    def _judged(self, calls: list[list[Comparison]],
                ) -> list[tuple[Comparison, dict[str, Any]]]:
        first = [ways[0] for ways in calls]
        judged = list(zip(first, self._judge(first)))
        again = [k for k, (_, verdict) in enumerate(judged)
                 if len(calls[k]) > 1 and not _made(verdict)]
        second = [calls[k][1] for k in again]
        for k, comparison, verdict in zip(again, second,
                                          self._judge(second)):
            if verdict["verdict"] in ("agrees", "disagrees"):
                judged[k] = (comparison, verdict)
        return judged

    def _judge(self, comparisons: list[Comparison]) -> list[dict[str, Any]]:
        return judge(comparisons, self.seed, self.threads, self.seconds)

    @property
    def off(self) -> list[Row]:
        """The rows that are off."""
        return [row for row in self.rows if row.verdict == OFF]

    def causes_of(self, row: Row) -> list[Cause | None]:
        """Why a row is off, None where nobody found out: for each finding."""
        return [next((c for c in self.causes if c.fits(row, finding)), None)
                for finding in row.findings]

    @property
    def unexplained(self) -> list[Row]:
        """The rows with something that has no cause."""
        return [row for row in self.off if None in self.causes_of(row)]

    @property
    def ours(self) -> list[Row]:
        """The rows where our rule is wrong."""
        return [row for row in self.off
                if any(c is not None and c.wrong == OURS
                       for c in self.causes_of(row))]

    def _shown(self, row: Row) -> bool:
        """Whether a table has the row: not where all of it is a reading of ops
        at large."""
        return row.verdict == OFF and not all(
            c is not None and c.wrong == CONVENTION and c.ops == "*"
            for c in self.causes_of(row))

    def json(self) -> dict[str, Any]:
        """All of it, for programs."""
        rows = []
        for row in self.rows:
            entry = dataclasses.asdict(row)
            for finding in entry["findings"]:
                if math.isinf(finding["ulp"]):
                    finding["ulp"] = None
            for finding, cause in zip(entry["findings"], self.causes_of(row)):
                if cause is not None:
                    finding["wrong"], finding["cause"] = cause.wrong, cause.why
            rows.append(entry)
        return {"title": self.title, "interrupted": self.interrupted,
                "rows": rows}

    # -- tables -------------------------------------------------------------

    def summary(self) -> str:
        """One line of counts."""
        compared = [r for r in self.rows if r.verdict in (AGREES, OFF)]
        ops = {r.op for r in compared}
        off = {r.op for r in self.off}
        left = {r.op for r in self.rows} - ops
        return (f"{self.title}: {len(ops)} ops compared in {len(compared)} "
                f"rows, {len(self.off)} rows of {len(off)} ops off, "
                f"{len(self.ours)} by the rule; {len(left)} ops not compared")

    def markdown(self) -> str:
        """What is off, as a table of Markdown: a row for each op and subject,
        with the dtypes beside each other."""
        dtypes = [d for d in DTYPES if any(r.dtype == d for r in self.rows)]
        lines = [f"| op | {self.column} | " + " | ".join(dtypes) + " | for example | wrong |",
                 "|" + "---|" * (len(dtypes) + 4)]
        for (op, subjects), rows in self._groups().items():
            by_dtype = {r.dtype: r for r in rows}
            cells = [_cell(by_dtype.get(d)) for d in dtypes]
            off = [r for r in rows if self._shown(r)]
            said = "; ".join(self._said(rows)).replace("|", "\\|")
            shown = next((r for r in off if r.dtype == "f32"), off[0])
            example = f"`{_short(_clearest(shown.findings).where())}`"
            if shown.dtype != "f32":
                example += f" in {shown.dtype}"
            lines.append("| " + " | ".join(
                [f"`{op}`", subjects, *cells, example, said]) + " |")
        hidden = sum(not self._shown(row) for row in self.off)
        if hidden:
            said = "; ".join(c.why for c in self.causes
                             if c.ops == "*" and c.wrong == CONVENTION)
            lines += ["", f"Not shown: {hidden} rows in which all that is off "
                          f"is a convention ({said})."]
        return "\n".join(lines)

    def _said(self, rows: list[Row]) -> list[str]:
        """Whose mistake it is in these rows, and why."""
        said = [NOBODY if c is None else f"{c.wrong}: {c.why}"
                for r in rows for c in self.causes_of(r)]
        return list(dict.fromkeys(said))

    def _groups(self) -> dict[tuple[str, str], list[Row]]:
        """The rows of an op and a subject, where any is off; subjects whose rows
        differ in what was not compared alone are one."""
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            if any(r.op == row.op and r.subject == row.subject
                   and self._shown(r) for r in self.off):
                groups.setdefault((row.op, row.subject), []).append(row)
        joined: list[tuple[str, list[str], list[Row]]] = []
        for (op, subject), rows in groups.items():
            for before, subjects, kept in joined:
                if before == op and _alike(kept, rows) \
                        and self._said(kept) == self._said(rows):
                    subjects.append(subject)
                    kept[:] = _fuller(kept, rows)
                    break
            else:
                joined.append((op, [subject], rows))
        return {(op, ", ".join(subjects)): rows
                for op, subjects, rows in joined}

    def text(self) -> str:
        """All rows, for a terminal."""
        return "\n".join(line_of(row) for row in self.rows)


def line_of(row: Row) -> str:
    """A row for a terminal, with lines for each way in which it is off."""
    said = row.verdict.upper() if row.verdict == OFF else row.verdict
    line = f"{row.op:26} {row.subject:19} {row.dtype:5} {said}"
    if row.samples:
        line += f", {row.calls} calls, {row.samples} samples"
    if row.verdict == AGREES:
        return line + f", {row.part:.2f} of the bound"
    if row.why:
        line += f": {row.why}"
    lines = [line]
    for f in row.findings:
        most = f", {f.ulp:.3g} ulp at most" if f.kind == "inaccurate" else ""
        lines += [f"    {f.kind}: {f.count} of them{most}",
                  f"      {f.call}", f"      {f.where()}"]
    return "\n".join(lines)


def _made(verdict: Mapping[str, Any]) -> bool:
    """Whether values were compared, and no call was an error."""
    return verdict["verdict"] == "agrees" or (
        verdict["verdict"] == "disagrees"
        and all(f["kind"] != "call" for f in verdict["findings"]))


def _alike(some: list[Row], others: list[Row]) -> bool:
    """Whether no dtype has another cell, but for those without one."""
    cells = {r.dtype: _cell(r) for r in some}
    return all(not _cell(r) or not cells.get(r.dtype)
               or cells[r.dtype] == _cell(r) for r in others)


def _fuller(some: list[Row], others: list[Row]) -> list[Row]:
    """Of each dtype the row that was compared."""
    by_dtype = {r.dtype: r for r in others if _cell(r)}
    kept = [r if _cell(r) else by_dtype.get(r.dtype, r) for r in some]
    seen = {r.dtype for r in kept}
    return kept + [r for r in others if r.dtype not in seen]


def _cell(row: Row | None) -> str:
    if row is None or row.verdict in (NOT_COMPARED, INCONCLUSIVE):
        return ""
    return row.cell().replace("|", "\\|")


def _clearest(findings: list[Finding]) -> Finding:
    """The gravest with few inputs, which a line has room for."""
    return min(findings, key=lambda f: (len(f.where()) > 90,
                                        _KINDS.index(f.kind)))


def _short(text: str, most: int = 90) -> str:
    text = text.replace("|", "\\|").replace("`", "'")
    return text if len(text) <= most else text[:most - 3] + "..."


def _add(found: dict[str, Finding], finding: Finding, call: str) -> None:
    """Keeps the finding with the largest error of its kind, and the sum of all
    counts."""
    if call:
        finding.call = call
    before = found.get(finding.kind)
    if before is None:
        found[finding.kind] = finding
        return
    if finding.kind == "inaccurate" and finding.ulp > before.ulp:
        finding.count += before.count
        found[finding.kind] = finding
    else:
        before.count += finding.count


def judge(comparisons: list[Comparison], seed: int = 1, threads: int = 0,
          seconds: float = 0.0) -> list[dict[str, Any]]:
    """The checker's verdict on each: {"verdict", "samples", "findings", ..}."""
    if not comparisons:
        return []
    verdicts: list[dict[str, Any] | None] = [None] * len(comparisons)
    # Comparisons of one rule set are one check, which takes all cores.
    by_rules: dict[int, list[int]] = {}
    for at, comparison in enumerate(comparisons):
        by_rules.setdefault(id(comparison.ours.rules), []).append(at)
    for places in by_rules.values():
        texts, oracles = [], {}
        for at in places:
            try:
                comparison, text = _as_rule(comparisons[at], f"audited_{at}")
                comparison.ours.rules.load(text)
            except Error as error:
                verdicts[at] = {"verdict": INCONCLUSIVE,
                                "why": _first_line(error)}
                continue
            texts.append(text)
            oracles[f"audited_{at}"] = comparison.theirs
        if not oracles:
            continue
        rules = comparisons[places[0]].ours.rules.load(*texts)
        report = check(rules, "audited_*", oracle=oracles, survey=True,
                       seed=seed, threads=threads, seconds=seconds)
        for name in oracles:
            verdicts[int(name.removeprefix("audited_"))] = \
                report.ops[name]["layers"]["host"]
    return [v for v in verdicts if v is not None]


def _as_rule(comparison: Comparison, name: str) -> tuple[Comparison, str]:
    """The comparison, as it may have to be for our graph to be a rule, and the
    rule."""
    while True:
        try:
            return comparison, rule_of(comparison.ours, name)
        except Error as error:
            # A linear op's derivative has no use for where it is taken.
            unread = re.search(r"the input `(.+?)`, of which the shape alone",
                               str(error))
            if unread is None:
                raise
            comparison = comparison.without(unread[1])


def rule_of(graph: Graph, name: str) -> str:
    """The graph as an op, of calls of our own ops: rules cannot say others."""
    hosts = {name for kind in ("aten", "onnx")
             for name in graph.rules.names(kind)}
    called = {word for word in re.findall(r"= ([\w.]+)\(", str(graph))
              if word in hosts}
    return (graph.expand(only=called) if called else graph).to_rule(name)


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0]


class Progress:
    """One line on a terminal, rewritten."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.begin = time.monotonic()

    def __call__(self, text: str) -> None:
        if self.live:
            seconds = time.monotonic() - self.begin
            print(f"\r\x1b[K{seconds:5.0f} s  {text[:60]}", end="",
                  file=sys.stderr, flush=True)

    def done(self) -> None:
        """Leaves an empty line."""
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# -- commands -----------------------------------------------------------------

def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that the commands have in common."""
    parser.add_argument("--op", action="append", default=[], metavar="GLOB",
                        help="ops by name, '*Softmax*'; all unless given")
    parser.add_argument("--dtype", action="append", default=[],
                        choices=DTYPES, help="all four unless given")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the samples (%(default)s)")
    parser.add_argument("--threads", type=int, default=0,
                        help="one for each core unless given")
    parser.add_argument("--seconds", type=float, default=60,
                        help="for each call of an op (%(default)s)")
    parser.add_argument("--markdown", action="store_true",
                        help="what is off alone, as a table of Markdown")
    parser.add_argument("--json", metavar="FILE",
                        help="where all of it goes, for programs")


def printer(options: argparse.Namespace) -> Callable[[Row], None] | None:
    """What shows rows as they come."""
    if options.markdown:
        return None
    return lambda row: print(line_of(row), flush=True)


def finish(audit: Audit, options: argparse.Namespace) -> int:
    """Prints what the rows have not; 130 where it was interrupted, 1 where a rule is wrong
    or nobody knows whose mistake it is, else 0."""
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(audit.json(), file, indent=1)
            file.write("\n")
    if options.markdown:
        print(audit.markdown())
    print(f"\n{audit.summary()}")
    if audit.interrupted:
        print(audit.interrupted)
        return 130
    for row in audit.unexplained:
        print(f"not explained: {row.op} {row.subject} {row.dtype}")
    return 1 if audit.ours or audit.unexplained else 0
