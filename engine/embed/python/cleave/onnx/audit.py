"""The function bodies that ONNX ships with its ops, against our rules.

    audit = audit_functions(["Softplus", "*Softmax*"])
    print(audit.markdown())

    python -m cleave.onnx audit --op 'Softplus' --json softplus.json

ONNX defines many ops by others: a body for each version of an op, and often one
for each opset that it may be inlined into. Each is inlined by the `onnx`
package into a model of one node, imported as any model is, and interpreted node
by node, each node rounded in its dtype. The call is one of ONNX's own tests of the
op; of ops that go element by element, on an axis of any length.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import warnings
from collections.abc import Iterable

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

from ..auditing import (DTYPES, Audit, Comparison, Progress, add_arguments,
                        finish, printer)
from ..errors import Error
from ..rules import load
from .audit_causes import CAUSES
from .model import ImportedModel, import_onnx
from .operators import RuleCalls
from .prepare import OPSET, _inlined

CALLS = 4
_ELEMENTS = {"f64": TensorProto.DOUBLE, "f32": TensorProto.FLOAT,
             "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_TYPES = {"f64": "tensor(double)", "f32": "tensor(float)",
          "f16": "tensor(float16)", "bf16": "tensor(bfloat16)"}


@dataclasses.dataclass
class _Call:
    """A node of one of ONNX's tests, and the inputs that it has there."""

    node: onnx.NodeProto
    inputs: list  # of (name, element type, shape)
    values: dict  # the arrays of those inputs

    def key(self) -> tuple:
        """What tells calls apart that an audit would not compare twice."""
        attributes = sorted(str(a) for a in self.node.attribute)
        kinds = [(bool(n), None) for n in self.node.input]
        return (tuple(attributes), tuple(kinds),
                tuple((e, len(s)) for _, e, s in self.inputs))

    def flat(self) -> "_Call | None":
        """The call on vectors, where all tensors have one shape; tensors
        without axes stay as they are."""
        shapes = {s for _, _, s in self.inputs if s}
        if len(shapes) != 1 or any(a.name in ("axis", "axes")
                                   for a in self.node.attribute):
            return None
        size = int(np.prod(next(iter(shapes))))
        return _Call(self.node, [(n, e, (size,) if s else ())
                                 for n, e, s in self.inputs], self.values)


def _calls() -> dict[str, list[_Call]]:
    """The calls in ONNX's own tests, by op."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests
        cases = load_model_tests(kind="node")
    found: dict[str, list[_Call]] = {}
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or not case.data_sets:
            continue
        values = {}
        for info, value in zip(graph.input, case.data_sets[0][0]):
            values[info.name] = numpy_helper.to_array(value) if isinstance(
                value, TensorProto) else value
        inputs = [(i.name, i.type.tensor_type.elem_type,
                   tuple(d.dim_value for d in i.type.tensor_type.shape.dim))
                  for i in graph.input]
        found.setdefault(graph.node[0].op_type, []).append(
            _Call(graph.node[0], inputs, values))
    return found


def _chosen(calls: list[_Call]) -> list[list[_Call]]:
    """Calls that differ: each on vectors, where that may be, and as it is."""
    kept: dict[tuple, list[_Call]] = {}
    for call in calls:
        flat = call.flat()
        kept.setdefault((flat or call).key(), [c for c in (flat, call) if c])
    return list(kept.values())


def functions_of(schema) -> list[int]:
    """The opsets of the op's bodies."""
    return sorted({*schema.function_opset_versions,
                   *schema.context_dependent_function_opset_versions})


class _NoFunction(Exception):
    """ONNX gives no body for this call."""


def _model(call: _Call, schema, dtype: str, opset: int, static: set[str],
           outputs: int, symbolic: bool) -> onnx.ModelProto:
    """One node in a model of that opset, its floats of that dtype."""
    sizes: dict[int, str] = {}

    def extent(size: int):
        if size <= 1 or not symbolic:
            return size
        return sizes.setdefault(size, f"n{len(sizes)}" if sizes else "n")

    names = dict(zip([n for n in call.node.input if n],
                     [i for i in call.inputs]))
    formal = list(schema.inputs)
    infos, initializers = [], []
    for at, name in enumerate(call.node.input):
        if not name:
            continue
        _, element, shape = names[name]
        parameter = formal[min(at, len(formal) - 1)]
        if parameter.name in static:
            initializers.append(numpy_helper.from_array(
                np.asarray(call.values[name]), name))
            continue
        if element in _ELEMENTS.values():
            element = _ELEMENTS[dtype]
            if _TYPES[dtype] not in parameter.types:
                raise _NoFunction(f"it takes no {dtype} at that opset")
        infos.append(helper.make_tensor_value_info(
            name, element, [extent(s) for s in shape]))
    node = onnx.NodeProto()
    node.CopyFrom(call.node)
    given = list(node.output)
    del node.output[:]
    node.output.extend((given + [f"result_{k}" for k in range(outputs)])
                       [k] or f"result_{k}" for k in range(outputs))
    known = set(schema.attributes)
    for attribute in node.attribute:
        if attribute.name not in known:
            raise _NoFunction(f"it has no attribute {attribute.name} at that "
                              "opset")
    # A body may read attributes that the node leaves out.
    present = {a.name for a in node.attribute}
    node.attribute.extend(a.default_value for name, a in
                          schema.attributes.items()
                          if name not in present and a.default_value.type)
    graph = helper.make_graph(
        [node], "audited", infos,
        [helper.make_empty_tensor_value_info(o) for o in node.output],
        initializers)
    model = helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", opset)])
    model.ir_version = min(model.ir_version, 13)
    return onnx.shape_inference.infer_shapes(model, check_type=True,
                                             strict_mode=True)


class _Auditor:
    """Makes the comparisons of one op."""

    def __init__(self, op: str, calls: list[_Call], most: int):
        self.op = op
        self.rules = load()
        self.rule = self.rules.describe(f"onnx.{op}")
        self.static = {i["name"] for i in self.rule["inputs"] if i["static"]}
        self.calls = _chosen(calls)
        self.most = most

    def comparisons(self, schema, body: int, dtype: str) -> tuple[list, list]:
        """Those of a body, and why others cannot be."""
        found, problems = [], []
        for ways in self.calls:
            if len(found) == self.most:
                break
            made, problem = self._comparisons(ways, schema, body, dtype)
            if made:
                found.append(made)
            else:
                problems.append(problem)
        return found, list(dict.fromkeys(problems))

    def _comparisons(self, ways: list[_Call], schema, body: int,
                     dtype: str) -> tuple[list[Comparison], str]:
        """One call with sizes that are open, and with numbers in their place:
        the latter for bodies that serve some sizes alone."""
        made, problem = [], ""
        for call in ways:
            for symbolic in (True, False):
                try:
                    made.append(self._imported(call, schema, body, dtype,
                                               symbolic))
                except (_NoFunction, Error, TypeError, ValueError,
                        onnx.shape_inference.InferenceError) as error:
                    problem = _reason(error)
            if made:
                break
        return made, problem

    def _imported(self, call: _Call, schema, body: int, dtype: str,
                  symbolic: bool) -> Comparison:
        opset = max(schema.since_version, body)
        count = min(len(self.rule["results"]), len(schema.outputs))
        model = _model(call, schema, dtype, opset, self.static, count,
                       symbolic)
        inlined = _inlined(model, self.op)
        if any(n.op_type == self.op for n in inlined.graph.node):
            raise _NoFunction("ONNX gives no body for such a call")
        ours = import_onnx(model).graph.with_rules(self.rules)
        theirs = _closed(import_onnx(inlined))
        return Comparison(ours, theirs, _call_text(call.node, ours))


def _closed(model: ImportedModel):
    """The graph with the tensors of the body, which import takes for
    parameters, as constants."""
    if not model.parameters:
        return model.graph
    builder = model.rules.builder()
    values = []
    for at, (name, kind) in enumerate(model.graph.inputs):
        if at < len(model.inputs):
            values.append(builder.input(name, kind))
            continue
        numbers = {float(v) for v in np.ravel(model.parameters[name])}
        if len(numbers) != 1:
            raise _NoFunction("its body has a tensor of different numbers")
        values.append(builder.constant(numbers.pop(), kind))
    results = builder.inline(model.graph, values)
    return builder.finish(dict(zip([n for n, _ in model.graph.outputs],
                                   results)))


def _call_text(node: onnx.NodeProto, graph) -> str:
    """`f32[n], f32[], alpha=2.0`."""
    types = [str(kind) for _, kind in graph.inputs]
    given = [f"{a.name}={_value(helper.get_attribute_value(a))}"
             for a in node.attribute]
    return ", ".join(types + given)


def _value(value) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:160] or type(error).__name__


def _schemas(patterns: list[str]):
    """(op, schema) of all that have a body, by name and version."""
    found = []
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in ("", "ai.onnx") and functions_of(schema) and (
                not patterns or any(fnmatch.fnmatchcase(schema.name, p)
                                    for p in patterns)):
            found.append(schema)
    return sorted(found, key=lambda s: (s.name, s.since_version))


def _subjects(schema) -> list[tuple[int, str]]:
    """A body, and how a table calls it: `22`, `13 in 18`."""
    versions = [b for b in functions_of(schema) if b <= OPSET]
    return [(b, f"{schema.since_version}"
             + (f" in {b}" if len(versions) > 1 else ""))
            for b in versions]


def audit_functions(ops: str | Iterable[str] | None = None,
                    dtypes: Iterable[str] = DTYPES, *, calls: int = CALLS,
                    seed: int = 1, threads: int = 0,
                    seconds: float = 0.0, on_row=None) -> Audit:
    """Compares the bodies of the ops whose names fit one of the patterns, all
    unless given, in `dtypes`. `on_row` is called with each row. Ctrl-C ends it
    with what was found until then."""
    patterns = [ops] if isinstance(ops, str) else list(ops or ())
    audit = Audit(CAUSES, seed, threads, seconds, on_row)
    audit.title = f"onnx {onnx.__version__}"
    audit.column = "opset"
    progress = Progress()
    have = RuleCalls(load())
    try:
        schemas = _schemas(patterns)
        cases = _calls() if schemas else {}
        for schema in schemas:
            op = schema.name
            for body, subject in _subjects(schema):
                if schema.deprecated:
                    audit.skip(op, subject, "deprecated")
                elif not have.has(op):
                    audit.skip(op, subject, "no rule")
                else:
                    auditor = _Auditor(op, cases.get(op, []), calls)
                    for dtype in dtypes:
                        progress(f"{op} {subject} {dtype}, "
                                 f"{len(audit.off)} off")
                        found, problems = auditor.comparisons(schema, body,
                                                              dtype)
                        if found:
                            audit.compare(op, subject, dtype, found, problems)
                        else:
                            audit.skip(op, subject, "; ".join(problems)
                                       or "ONNX has no test of it", dtype)
    except KeyboardInterrupt:
        audit.interrupted = f"interrupted after {len(audit.rows)} rows"
    finally:
        progress.done()
    return audit


def main(arguments: list[str] | None = None) -> int:
    """The command `python -m cleave.onnx audit`."""
    parser = argparse.ArgumentParser(
        prog="cleave audit-onnx", description=__doc__.split("\n\n")[0])
    add_arguments(parser)
    parser.add_argument("--calls", type=int, default=CALLS,
                        help="of each op, from ONNX's tests (%(default)s)")
    options = parser.parse_args(arguments)
    audit = audit_functions(options.op, options.dtype or DTYPES,
                            calls=options.calls, seed=options.seed,
                            threads=options.threads, seconds=options.seconds,
                            on_row=printer(options))
    if not audit.rows and not audit.interrupted:
        parser.error(f"no op with a body fits {' '.join(options.op)}")
    return finish(audit, options)
