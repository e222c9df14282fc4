"""The shapes of a graph's outputs as a function of those of its inputs, for
tensors that have no data: sizes may be symbolic, guards become torch._check.

    shapes = compile_shapes(graph)
    shapes([n, 3], [3])          # [(n, 4)]
"""

from __future__ import annotations

from cleave.torch.graph_text import python_name, size_variables
from cleave.torch.printer import GraphPrinter, compile_source, print_sizes


def _texts(type) -> tuple[str, ...]:
    return tuple(str(n) for n in type.shape)


def print_shapes(graph) -> str:
    """The text of that function."""
    def value(name, type):
        return {"name": name, "type": f"f32[{', '.join(_texts(type))}]",
                "node": -1}

    shown = {"inputs": [value(n, t) for n, t in graph.inputs], "nodes": [],
             "guards": list(graph.guards), "outputs": []}
    printer = GraphPrinter(shown, {}, "", "    ")
    names = printer.name_inputs()
    print_sizes(printer, shown, names, "{name}[{axis}]")
    results = []
    for _, type in graph.outputs:
        sizes = []
        for text in _texts(type):
            unknown = [v for v in size_variables(text)
                       if v not in printer.sizes]
            if unknown:
                # The engine finds this extent while it runs.
                printer.sizes[unknown[0]] = name = python_name(unknown[0])
                printer.emit(f"{name} = torch.library.get_ctx()"
                             ".new_dynamic_size()")
            sizes.append(printer.size(text))
        results.append("[" + ", ".join(sizes) + "]")
    lines = [f"def shapes({', '.join(names)}):", *printer.lines,
             f"    return [{', '.join(results)}]"]
    return "\n".join(lines) + "\n"


def compile_shapes(graph):
    """The function itself."""
    return compile_source(print_shapes(graph), "shapes")
