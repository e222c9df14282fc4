"""Whether rules mean what they say, and whether functions mean the same.

    report = cleave.check(rules, "soft_*")
    report.agrees; print(report)

    cleave.check(rules, "soft_argmax", oracle=my_numpy_function)
    cleave.equivalent(f, g, "f32[n, 4]").agrees

`check` compares each rule with its spec: over the reals, in units of the last
place, batched and differentiated. With an oracle, a Python function on numpy's
arrays, it holds the function to the body of the op instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .calls import kernel_of
from .errors import Error, InvalidArgumentError
from .graph_making import make_graph
from .graphs import Graph
from .hosts import prepare, wrapped
from .rules import Rules, load

Oracle = Callable[..., Any] | Graph


class DisagreementError(Error):
    """A check found a disagreement; `report` has it."""

    name = "DISAGREEMENT"
    report: Report


class Report:
    """The verdicts of a check. It prints as the command's table."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.agrees: bool = result["agrees"]
        self.text: str = result["text"]
        self.details: dict[str, Any] = result["report"]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<report: {'agrees' if self.agrees else 'DISAGREES'}, " \
               f"{len(self.ops)} ops>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text)

    @property
    def ops(self) -> dict[str, Any]:
        """What was found for each op: its layers and their verdicts."""
        return dict(self.details["ops"])

    def raise_for_disagreement(self) -> Report:
        """This report, or DisagreementError with its text."""
        if self.agrees:
            return self
        error = DisagreementError(self.text, code=9)
        error.report = self
        raise error


def check(rules: Rules | None = None, ops: str | None = None, *,
          oracle: Oracle | Mapping[str, Oracle] | None = None, seed: int = 1,
          layers: str | Iterable[str] | None = None,
          dtypes: str | Iterable[str] | None = None, kernels: bool = False,
          threads: int = 0, sources: Iterable[str] | None = None,
          ulp: float = 0.0, input_ulp: float = 0.0, survey: bool = False,
          seconds: float = 0.0, raise_on_disagreement: bool = False) -> Report:
    """Checks the ops that a name or a pattern with `*` stands for; None: all.

    `oracle` has a Python function for an op, or a dict of them by names of ops:
    each takes the inputs as numpy arrays and the attributes by name, and is
    held to the op's body; a graph of the op's inputs and outputs is interpreted
    in its place. It may be `ulp` units in the last place off, and as far again
    as the body moves where its inputs move by `input_ulp` of them (4 each,
    unless given). With `survey` the report has all ways in which it is off, how
    often and by how much, in the place of the first. `seconds` bounds the time
    of each op: what takes longer is inconclusive, or, of a survey, what was
    found until then.

    `layers` names what is compared ("L2,L3,host"), `dtypes` the dtypes,
    `sources` the rule files; `kernels` adds compiled kernels.
    """
    rules = load() if rules is None else rules
    functions = oracle
    if oracle is not None and not isinstance(oracle, Mapping):
        if ops is None or "*" in ops or "?" in ops:
            raise InvalidArgumentError(
                "an oracle is of one op: name it, or give a dict", code=3)
        functions = {ops: oracle}
    if oracle is not None and layers is None:
        layers = "host"
    if kernels:
        prepare()
    text = rules._handle.check(
        ops, seed, _joined(layers), _joined(dtypes),
        wrapped(functions), kernels, threads,  # type: ignore[arg-type]
        None if sources is None else "\n".join(sources),
        ulp, input_ulp, survey, seconds)
    report = Report(json.loads(text))
    return report.raise_for_disagreement() if raise_on_disagreement else report


def _joined(names: str | Iterable[str] | None) -> str | None:
    if names is None or isinstance(names, str):
        return names
    return ",".join(names)


def equivalent(f: Callable[..., Any], g: Callable[..., Any], *types: Any,
               rules: Rules | None = None, trace: bool = True, seed: int = 1,
               raise_on_disagreement: bool = False) -> Report:
    """Whether two functions give the same for arguments of these types.

    Sizes may be symbolic: f32[n, 4] stands for all n. `f` becomes an op, `g` a
    kernel that is held to it as a kernel of a host is; the tolerance is that
    of sums in another order. With `trace=False` g is called on numpy's arrays
    as it is.
    """
    graph = make_graph(f, rules)(*types)
    if trace:
        other = make_graph(g, graph.rules)(*types)
        _same_types(graph, other)
        function: Oracle = kernel_of(other)
    else:
        function = g
    name = "equivalent_to_the_other"
    extended = graph.rules.load(graph.to_rule(name))
    return check(extended, name, oracle=function, seed=seed,
                 raise_on_disagreement=raise_on_disagreement)


def _same_types(f: Graph, g: Graph) -> None:
    first = [kind for _, kind in f.outputs]
    second = [kind for _, kind in g.outputs]
    if first != second:
        raise InvalidArgumentError(
            f"the functions give {_listed(first)} and {_listed(second)}",
            code=3)


def _listed(kinds: Iterable[Any]) -> str:
    return "(" + ", ".join(map(str, kinds)) + ")"
