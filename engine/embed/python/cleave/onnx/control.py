"""If, Loop and Scan as the control flow of the language.

    If     `cond(p) { .. } else { .. }`, or one branch where p is known
    Loop   `scan(..) over i in iota(n) { .. }` where it runs n times for sure,
           else `while(..) p { .. }`; repeated text where types change
    Scan   `scan(..) over x in xs { .. }`

Regions read what stands around them by name, as ONNX's bodies do.
"""

from __future__ import annotations

import numpy as np

from .movement import axis_of
from .operators import attributes_of, reshape
from .size import Size
from .trace import (Body, Statement, Unknown, Unsupported, Value,
                    static_value)

# Loops that have to be written out: at most so many steps.
_UNROLLED = 64


def _known_bool(value: Value | None, default: bool | None):
    if value is None:
        return default
    if value.static is None:
        return None
    return bool(value.static.reshape(-1)[0])


def _scalar(body: Body, name: str, value: Value) -> str:
    """A predicate or count as a tensor without axes."""
    return body.text(reshape(body, name, value, ()))


def _block(region: Body, result: str) -> str:
    region.prune([result])
    return "{\n" + "\n".join([*region.render(), f"  {result}"]) + "\n}"


def _loop(body: Body, states: list[Value], carried, over: str,
          block: str) -> str:
    """The block for each of `over`: a scan where it carries states."""
    if not states:
        return f"map({over}) {block}"
    inits = ", ".join(f"{s.text} = {body.text(v)}"
                      for s, v in zip(states, carried))
    return f"scan({inits}) over {over} {block}"


def _record(body: Body, names: list[str], values: list[Value]) -> str:
    if len(values) == 1 and names == [""]:
        return body.text(values[0])
    return "(" + ", ".join(f"{n} = {body.text(v)}"
                           for n, v in zip(names, values)) + ")"


def _results(body: Body, node, text: str, names: list[str],
             types: list[tuple]) -> list[Value]:
    """Adds `let r = text`, and a statement for each field that is read."""
    function = body.function
    made = function.names.new(node.name or node.op_type)
    body.statements.append(Statement(made, text, alone=True,
                                     place=function.place))
    record = Value("f32", (), made)
    if names == [""]:
        dtype, shape = types[0]
        return [Value(dtype, shape, made)]
    return [body.emit(name, dtype, shape, "{0}." + name, record)
            for name, (dtype, shape) in zip(names, types)]


def if_node(importer, body: Body, node, inputs, scope):
    attributes = attributes_of(node)
    known = _known_bool(inputs[0], None)
    if known is not None:
        branch = attributes["then_branch" if known else "else_branch"]
        return importer.graph(branch, body, scope, {})
    predicate = _scalar(body, node.output[0] + "_if", inputs[0])
    sides = []
    for key in ("then_branch", "else_branch"):
        region = Body(body.function)
        sides.append((region, importer.graph(attributes[key], region, scope,
                                             {})))
    types = []
    for then, other, output in zip(sides[0][1], sides[1][1], node.output):
        if then is None or other is None:
            raise Unknown
        if (then.dtype, then.shape) != (other.dtype, other.shape):
            raise Unsupported(f"its branches give {then.type} and {other.type}"
                              f" for {output}")
        types.append((then.dtype, then.shape))
    names = [""] if len(types) == 1 else [
        body.function.names.new(o) for o in node.output]
    texts = []
    for region, values in sides:
        texts.append(_block(region, _record(region, names, values)))
    return _results(body, node, f"cond({predicate}) {texts[0]} else "
                    f"{texts[1]}", names, types)


def loop_node(importer, body: Body, node, inputs, scope):
    graph = attributes_of(node)["body"]
    count, keep = (list(inputs) + [None, None])[:2]
    carried = list(inputs[2:])
    trips = None
    if count is not None and count.static is not None:
        trips = count.static.reshape(-1)[0]
        trips = trips if isinstance(trips, Size) else int(trips)
    first = _known_bool(keep, True)
    if first is False or trips is not None and not isinstance(
            trips, Size) and trips <= 0:
        extra = len(graph.output) - 1 - len(carried)
        if extra:
            raise Unsupported("a loop without a step that stacks results")
        return carried
    if first and trips is not None:
        attempt = _counted(importer, body, node, graph, trips, carried, scope)
        if attempt is not None:
            return attempt
    return _while(importer, body, node, graph, count, trips, keep, carried,
                  scope)


def _counted(importer, body, node, graph, trips, carried, scope):
    """A loop whose condition stays true: None where it does not."""
    function = body.function
    region = Body(function)
    index = function.names.new(graph.input[0].name)
    states = [Value(v.dtype, v.shape, function.names.new(i.name))
              for v, i in zip(carried, graph.input[2:])]
    given = {graph.input[0].name: Value("i64", (), index),
             graph.input[1].name: static_value(np.array(True), "keep")}
    given.update({i.name: s for i, s in zip(graph.input[2:], states)})
    keep, *values = importer.graph(graph, region, scope, given)
    if keep is None or _known_bool(keep, True) is not True:
        return None
    if any(v is None for v in values):
        raise Unknown
    nexts, stacked = values[:len(states)], values[len(states):]
    if any((a.dtype, a.shape) != (b.dtype, b.shape)
           for a, b in zip(states, nexts)):
        return _unrolled(importer, body, graph, trips, carried, scope)
    rows = [function.names.new(o) for o in node.output[len(states):]]
    result = _record(region, [s.text for s in states] + rows, values)
    block = _block(region, result)
    over = f"{index} in iota({trips})"
    text = _loop(body, states, carried, over, block)
    types = [(s.dtype, s.shape) for s in states] + [
        (v.dtype, (trips, *v.shape)) for v in stacked]
    return _results(body, node, text, [s.text for s in states] + rows, types)


def _unrolled(importer, body, graph, trips, carried, scope):
    """Steps one after the other, each with types of its own."""
    if isinstance(trips, Size) or trips > _UNROLLED:
        raise Unsupported("a loop whose carried types change, and whose steps "
                          f"are not known or more than {_UNROLLED}")
    rows: list[list[Value]] = []
    values = carried
    for step in range(trips):
        given = {graph.input[0].name: static_value(
            np.array(step, np.int64), graph.input[0].name),
            graph.input[1].name: static_value(np.array(True), "keep")}
        given.update({i.name: v for i, v in zip(graph.input[2:], values)})
        keep, *results = importer.graph(graph, body, scope, given)
        if keep is None or any(r is None for r in results):
            raise Unknown
        if _known_bool(keep, True) is not True:
            raise Unsupported("a loop whose carried types change and whose "
                              "condition is computed")
        values = results[:len(carried)]
        rows.append(results[len(carried):])
    stacks = []
    for at in range(len(rows[0])):
        parts = [row[at] for row in rows]
        if any(p.shape != parts[0].shape for p in parts):
            raise Unsupported("it stacks tensors of different shapes")
        parts = [reshape(body, p.name, p, (1, *p.shape)) for p in parts]
        places = ", ".join(f"{{{i}}}" for i in range(len(parts)))
        stacks.append(body.emit("stacked", parts[0].dtype,
                                (trips, *parts[0].shape[1:]),
                                f"concatenate([{places}], axis: 0)", *parts))
    return [*values, *stacks]


def _while(importer, body, node, graph, count, trips, keep, carried, scope):
    function = body.function
    region = Body(function)
    index = function.names.new(graph.input[0].name)
    going = function.names.new(graph.input[1].name)
    states = [Value(v.dtype, v.shape, function.names.new(i.name))
              for v, i in zip(carried, graph.input[2:])]
    given = {graph.input[0].name: Value("i64", (), index),
             graph.input[1].name: Value("bool", (), going)}
    given.update({i.name: s for i, s in zip(graph.input[2:], states)})
    after, *values = importer.graph(graph, region, scope, given)
    if len(values) > len(states):
        raise Unsupported("it stacks results, and how many is known only "
                          "where it runs")
    if after is None or any(v is None for v in values):
        raise Unknown
    for a, b in zip(states, values):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            raise Unsupported(f"what it carries changes from {a.type} to "
                              f"{b.type}")
    after = reshape(region, "keep", after, ())
    result = _record(region, [index, going] + [s.text for s in states],
                     [Value("i64", (), f"{index} + 1"), after, *values])
    start = "true" if keep is None else _scalar(body, "keep", keep)
    if start == "true":
        start = "convert(true, dtype: bool)"
    inits = ", ".join(
        [f"{index} = convert(0, dtype: i64)", f"{going} = {start}"]
        + [f"{s.text} = {body.text(v)}" for s, v in zip(states, carried)])
    test = going
    if trips is not None:
        test += f" and {index} < {trips} max {trips}"
    elif count is not None:
        test += f" and {index} < {_scalar(body, 'limit', count)}"
    text = f"while({inits}) {test} {_block(region, result)}"
    names = [s.text for s in states]
    return _results(body, node, text, names,
                    [(s.dtype, s.shape) for s in states])


def _to_front(body: Body, value: Value, axis: int, back: bool) -> Value:
    """The axis that is run along in front; with `back` the way back."""
    rank = len(value.shape)
    at = axis_of(axis, rank)
    if at == 0:
        return value
    order = [at] + [d for d in range(rank) if d != at]
    if back:
        order = [order.index(d) for d in range(rank)]
    return body.emit(value.name, value.dtype,
                     [value.shape[d] for d in order],
                     f"transpose({{0}}, axes: {order})", value)


def _reversed(body: Body, value: Value) -> Value:
    return body.emit(value.name, value.dtype, value.shape,
                     "reverse({0}, axes: [0])", value)


def scan_node(importer, body: Body, node, inputs, scope):
    attributes = attributes_of(node)
    graph = attributes["body"]
    number = attributes["num_scan_inputs"]
    carried = list(inputs[:len(inputs) - number])
    xs = list(inputs[len(inputs) - number:])
    outs = len(graph.output) - len(carried)

    def listed(name, count):
        return list(attributes.get(name, [])) or [0] * count

    rows = []
    for x, axis, back in zip(xs, listed("scan_input_axes", number),
                             listed("scan_input_directions", number)):
        x = _to_front(body, x, axis, False)
        rows.append(_reversed(body, x) if back else x)
    function = body.function
    region = Body(function)
    formal = [Value(v.dtype, v.shape, function.names.new(i.name))
              for v, i in zip(carried, graph.input)]
    slices = [Value(v.dtype, v.shape[1:], function.names.new(i.name))
              for v, i in zip(rows, graph.input[len(carried):])]
    given = {i.name: v for i, v in zip(graph.input, formal + slices)}
    values = importer.graph(graph, region, scope, given)
    if any(v is None for v in values):
        raise Unknown
    for a, b in zip(formal, values):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            raise Unsupported(f"what it carries changes from {a.type} to "
                              f"{b.type}")
    names = [s.text for s in formal] + [
        function.names.new(o.name) for o in graph.output[len(carried):]]
    block = _block(region, _record(region, names, values))
    over = ", ".join(f"{s.text} in {body.text(x)}"
                     for s, x in zip(slices, rows))
    text = _loop(body, formal, carried, over, block)
    length = rows[0].shape[0]
    types = [(v.dtype, v.shape) for v in formal] + [
        (v.dtype, (length, *v.shape)) for v in values[len(carried):]]
    results = _results(body, node, text, names, types)
    for at, (axis, back) in enumerate(zip(
            listed("scan_output_axes", outs),
            listed("scan_output_directions", outs)), len(carried)):
        if back:
            results[at] = _reversed(body, results[at])
        results[at] = _to_front(body, results[at], axis, True)
    return results


HANDLERS = {"If": if_node, "Loop": loop_node, "Scan": scan_node}
