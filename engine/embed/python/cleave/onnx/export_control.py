"""Loops and branches as ONNX's Scan, Loop and If.

Bodies of ONNX read what stands around them by name: the constants of a region
are such names, and no inputs of it.
"""

from __future__ import annotations

import numpy as np

from . import export as _export


def _text(kind) -> str:
    dtype, sizes = kind
    return f"{dtype}[{', '.join(str(s) for s in sizes)}]"


def _rows(kind):
    dtype, sizes = kind
    return dtype, list(sizes)[1:]


def _scan_node(w, carries, xs, given, gives, build, reverse, count_stacked,
               axis=0, out_axis=0):
    """A Scan over `xs`; `build(writer, names)` gives its body's outputs."""
    kinds = given
    names = [w.name("state") for _ in carries] + [w.name("row") for _ in xs]
    inputs = []
    for name, kind in zip(names, kinds):
        inputs.append((name, _text(kind)))
    body = _export.subgraph(w, "scan", inputs,
                            lambda inner: build(inner, names))
    direction = int(reverse)
    made = w.add("Scan", carries + xs, count=len(gives), body=body,
                 num_scan_inputs=len(xs),
                 scan_input_axes=[axis] * len(xs),
                 scan_output_axes=[out_axis] * count_stacked,
                 scan_input_directions=[direction] * len(xs),
                 scan_output_directions=[direction] * count_stacked)
    return [made] if isinstance(made, str) else made


def scan(w, a, x, given, gives):
    consts, carries = a.integer("consts"), a.integer("carries")
    region = a.region("body")
    xs = x[consts + carries:]
    kinds = given[consts:consts + carries] + [
        _rows(k) for k in given[consts + carries:]]
    if not xs:
        # ONNX runs along something, if only along numbers.
        xs = [w.add("Range", [w.size(0), w.size(a.size("length")),
                              w.size(1)])]
        kinds = kinds + [("i64", [])]

    def build(inner, names):
        inputs = x[:consts] + names
        results = _export.region_values(inner, region,
                                        inputs[:len(region["inputs"])])
        return [(r, o["type"]) for r, o in zip(results, region["outputs"])]

    return _scan_node(w, x[consts:consts + carries], xs, kinds, gives, build,
                      a.flag("reverse"), len(gives) - carries)


def cond(w, a, x, given, gives):
    def branch(region):
        def build(inner):
            results = _export.region_values(inner, region, x[1:])
            return [(r, o["type"])
                    for r, o in zip(results, region["outputs"])]
        return _export.subgraph(w, "branch", [], build)

    made = w.add("If", [x[0]], count=len(gives),
                 then_branch=branch(a.region("then")),
                 else_branch=branch(a.region("else")))
    return [made] if isinstance(made, str) else made


def while_loop(w, a, x, given, gives):
    consts = a.integer("consts")
    test, step = a.region("cond"), a.region("body")
    carries = x[consts:]
    start = _export.region_values(w, test, x)[0]
    names = [w.name("state") for _ in carries]
    inputs = [(w.name("turn"), "i64[]"), (w.name("going"), "bool[]")] + [
        (n, _text(k)) for n, k in zip(names, given[consts:])]

    def build(inner):
        after = _export.region_values(inner, step, x[:consts] + names)
        keep = _export.region_values(inner, test, x[:consts] + after)[0]
        return [(keep, "bool[]")] + [
            (n, o["type"]) for n, o in zip(after, step["outputs"])]

    made = w.add("Loop", ["", start] + carries, count=len(gives),
                 body=_export.subgraph(w, "loop", inputs, build))
    return [made] if isinstance(made, str) else made


def linear_scan(w, a, x, given, gives):
    axis = a.integer("axis")
    dtype, sizes = gives[0]
    row = [s for d, s in enumerate(sizes) if d != axis]
    shape = w.sizes(sizes)
    spread = [v if list(k[1]) == list(sizes) else w.add("Expand", [v, shape])
              for v, k in zip(x[:2], given[:2])]

    def build(inner, names):
        state = inner.add("Add", [inner.add("Mul", [names[1], names[0]]),
                                  names[2]])
        text = _text((dtype, row))
        return [(state, text), (state, text)]

    kinds = [(dtype, row)] * 3
    return _scan_node(w, [x[2]], spread, kinds, [None, gives[0]], build,
                      a.flag("reverse"), 1, axis, axis)[1]


def cumulative(op: str):
    """The running extremum along an axis."""
    def build_scan(w, a, x, given, gives):
        axis = a.integer("axis")
        dtype, sizes = gives[0]
        row = [s for d, s in enumerate(sizes) if d != axis]
        if dtype.startswith("f"):
            first = -np.inf if op == "Max" else np.inf
        else:
            limits = np.iinfo(_export.NUMPY[dtype])
            first = limits.min if op == "Max" else limits.max
        start = w.add("Expand", [w.number(first, dtype), w.sizes(row)])

        def build(inner, names):
            state = inner.add(op, names)
            text = _text((dtype, row))
            return [(state, text), (state, text)]

        return _scan_node(w, [start], [x[0]], [(dtype, row)] * 2,
                          [None, gives[0]], build, a.flag("reverse"), 1, axis,
                          axis)[1]

    return build_scan
