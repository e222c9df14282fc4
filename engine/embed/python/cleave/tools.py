"""Questions about rules, and C libraries, as functions.

    cleave.coverage("softmax")["vjp"]["kind"]          # "derived"
    print(cleave.derive("softmax", "vjp"))
    print(cleave.explain(f, "f32[n]"))
    cleave.compile_library(f, "f32[n]", name="f", folder="out")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .graph_making import make_graph
from .graphs import Graph
from .rules import Rules, load


def coverage(op: str, rules: Rules | None = None) -> dict[str, Any]:
    """Whether an op has "vmap", "jvp" and "vjp", and why not."""
    return (rules or load()).coverage(op)


def derive(op: str, transform: str, rules: Rules | None = None) -> str:
    """The rule of "vmap", "jvp" or "vjp" of an op, as rule text."""
    return (rules or load()).derive(op, transform)


def explain(function: Callable[..., Any] | Graph, *types: Any,
            rules: Rules | None = None) -> str:
    """The primitives of a function, each with the rule and line it is from."""
    graph = function if isinstance(function, Graph) else make_graph(
        function, rules)(*types)
    return graph.expand().simplify().explain()


def compile_library(function: Callable[..., Any] | Graph, *types: Any,
                    name: str, folder: Any,
                    levels: Iterable[str] | None = None,
                    rules: Rules | None = None) -> list[str]:
    """A static library with a C header for a function; gives its files.

    Sizes that are symbolic become parameters. It needs cc, ld, objcopy and ar.
    """
    graph = function if isinstance(function, Graph) else make_graph(
        function, rules)(*types)
    return graph.compile_library(name, folder, levels)


def import_onnx(model: Any, *arguments: Any, **named: Any) -> Any:
    """A model of ONNX as rules; `cleave.onnx.import_onnx`."""
    from .onnx import import_onnx as imported
    return imported(model, *arguments, **named)
