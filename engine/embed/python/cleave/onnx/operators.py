"""Nodes that become an expression, or a call of a rule.

An op of `EXPRESSIONS` is an operator or function of the language itself. Any
other op that has an `onnx` declaration in the rules becomes a call of that:
`onnx.Conv(x, w, bias, strides: [2])`. The rules say what such a call takes,
which inputs must be known before anything runs, and what types it gives.
"""

from __future__ import annotations

import json

import numpy as np
import onnx

from ..errors import Error
from .size import Size, broadcast, parse
from .trace import (NUMPY, Body, Unsupported, Value, known_list, number_text,
                    sizes_text, static_value)

# op -> (template, dtype of the result or None for that of the operands)
EXPRESSIONS = {
    "Add": ("{0} + {1}", None), "Sub": ("{0} - {1}", None),
    "Mul": ("{0} * {1}", None), "Neg": ("-{0}", None),
    "Sqrt": ("sqrt({0})", None), "Exp": ("exp({0})", None),
    "Log": ("log({0})", None), "Tanh": ("tanh({0})", None),
    "Abs": ("abs({0})", None), "Sin": ("sin({0})", None),
    "Cos": ("cos({0})", None), "Erf": ("erf({0})", None),
    "Sigmoid": ("sigmoid({0})", None), "Floor": ("floor({0})", None),
    "Ceil": ("ceil({0})", None), "Relu": ("relu({0})", None),
    "Reciprocal": ("1 / {0}", None), "Softplus": ("softplus({0})", None),
    "Equal": ("{0} == {1}", "bool"), "Less": ("{0} < {1}", "bool"),
    "LessOrEqual": ("{0} <= {1}", "bool"), "Greater": ("{0} > {1}", "bool"),
    "GreaterOrEqual": ("{0} >= {1}", "bool"), "Not": ("not {0}", "bool"),
    "And": ("{0} and {1}", "bool"), "Or": ("{0} or {1}", "bool"),
}
_FLOATS_ONLY = {"Sqrt", "Exp", "Log", "Tanh", "Sin", "Cos", "Erf", "Sigmoid",
                "Floor", "Ceil", "Reciprocal", "Softplus", "Relu"}


def attributes_of(node: onnx.NodeProto) -> dict:
    """The attributes as Python values; texts are str, tensors arrays."""
    result = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode()
        elif isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        elif isinstance(value, (list, tuple)) or hasattr(value, "extend"):
            value = [v.decode() if isinstance(v, bytes) else v for v in value]
        elif attribute.type == onnx.AttributeProto.FLOAT:
            value = np.float32(value)
        if attribute.type == onnx.AttributeProto.FLOATS:
            value = [np.float32(v) for v in value]
        result[attribute.name] = value
    return result


def expression(body: Body, node: onnx.NodeProto, inputs: list):
    """The result of an op of EXPRESSIONS, or None where a rule is to do it."""
    op = node.op_type
    if op == "Div" and inputs[0].is_float:
        template, dtype = "{0} / {1}", None
    elif op == "Pow" and inputs[0].is_float and _small_power(inputs[1]):
        exponent = int(inputs[1].static.reshape(-1)[0])
        shape = broadcast(inputs[0].shape, inputs[1].shape)
        if len(shape) == len(inputs[0].shape):
            return [body.emit(node.output[0], inputs[0].dtype, shape,
                              f"{{0}}^{exponent}", inputs[0])]
        return None
    elif op in ("Max", "Min") and len(inputs) == 2 and (
            inputs[0].is_float or inputs[0].is_int):
        template, dtype = f"{op.lower()}({{0}}, {{1}})", None
    elif op in EXPRESSIONS:
        if op in _FLOATS_ONLY and not inputs[0].is_float:
            return None
        template, dtype = EXPRESSIONS[op]
    else:
        return None
    shape = broadcast(*(v.shape for v in inputs))
    operands: list = list(inputs)
    for at, other in ((0, 1), (1, 0)) if len(inputs) == 2 else ():
        # A number beside a tensor whose shape the result has stands bare.
        if (_is_number(inputs[at]) and inputs[other].static is None
                and len(inputs[other].shape) == len(shape)):
            operands[at] = body.literal(inputs[at])
    return [body.emit(node.output[0], dtype or inputs[0].dtype, shape,
                      template, *operands)]


def _is_number(value: Value) -> bool:
    return value.static is not None and value.static.size == 1


def _small_power(value: Value) -> bool:
    if not _is_number(value):
        return False
    exponent = value.static.reshape(-1)[0]
    return (not isinstance(exponent, Size) and float(exponent).is_integer()
            and 1 <= exponent <= 8)


class RuleCalls:
    """Calls of the rules' `onnx` declarations."""

    def __init__(self, rules):
        self.rules = rules
        self.names = set(rules.names("onnx"))
        self._described: dict[str, dict] = {}
        self._types: dict = {}

    def has(self, op: str) -> bool:
        return f"onnx.{op}" in self.names

    def describe(self, op: str) -> dict:
        if op not in self._described:
            self._described[op] = self.rules.describe(f"onnx.{op}")
        return self._described[op]

    def call(self, body: Body, node: onnx.NodeProto, inputs: list) -> list:
        """The node's results. Raises Unsupported where the rule lacks what
        the node asks for, or refuses it."""
        op = node.op_type
        rule = self.describe(op)
        attributes = attributes_of(node)
        texts, named, known = [], [], {}
        types: dict = {}
        operands: list = []

        def slot(operand):
            operands.append(operand)
            return f"{{{len(operands) - 1}}}"

        formal = rule["inputs"]
        variadic = bool(formal) and bool(formal[-1].get("variadic"))
        given = list(inputs)
        if op == "ConstantOfShape" and "value" in attributes:
            given.append(static_value(attributes.pop("value").reshape(()),
                                      node.output[0]))
        if variadic:
            given = given[:len(formal) - 1] + [given[len(formal) - 1:]]
        # An input that became an attribute, or the other way round, of an
        # older opset is given by its name.
        skipped = False
        for at, parameter in enumerate(formal):
            name = parameter["name"]
            value = given[at] if at < len(given) else None
            if value is None and name in attributes:
                listed = attributes.pop(name)
                listed = listed if isinstance(listed, list) else [listed]
                value = static_value(np.array(listed), name)
            if parameter.get("static"):
                if value is None:
                    skipped = True
                    continue
                known[name] = known_list(value, f"its input `{name}`")
                text = sizes_text(known[name])
            elif isinstance(value, list):
                types[name] = [v.type if v else None for v in value]
                text = "[" + ", ".join(slot(v) for v in value) + "]"
            else:
                if value is not None:
                    types[name] = value.type
                else:
                    skipped = True
                    continue
                text = slot(value)
            (named if skipped else texts).append(
                f"{name}: {text}" if skipped else text)
        if len(given) > len(formal) and any(
                v is not None for v in given[len(formal):]):
            raise Unsupported(f"it has {len(given)} inputs, the rule takes "
                              f"{len(formal)}")
        _drop_defaults(op, attributes, known)
        wide = any(v is not None and v.dtype == "f64" for v in inputs)
        written = self._attributes(node, rule, attributes, wide)
        texts += named + [f"{k}: {t}" for k, t in written.items()]
        known_texts = {name: sizes_text(v) for name, v in known.items()}
        outputs = self.types(op, types, ", ".join(
            f"{name}: {text}"
            for name, text in {**known_texts, **written}.items()))
        return self._results(body, node, rule, outputs,
                             f"onnx.{op}({', '.join(texts)})", operands)

    @staticmethod
    def _attributes(node, rule: dict, attributes: dict, wide: bool) -> dict:
        """The texts of the attributes. ONNX's are numbers of f32: where the
        node is `wide`, of f64, 0.1 is not what 0.1 is, also as a default."""
        declared = {a["name"]: a for a in rule["attributes"]}
        schema = onnx.defs.get_schema(node.op_type, node.domain)
        written = {}
        if wide:
            floats = {name: np.float32(a.default_value.f)
                      for name, a in schema.attributes.items()
                      if a.default_value.type == onnx.AttributeProto.FLOAT}
            attributes = {**floats, **attributes}
        for name, value in attributes.items():
            default = None
            if name in schema.attributes:
                default = onnx.helper.get_attribute_value(
                    schema.attributes[name].default_value) if schema.attributes[
                        name].default_value.type else None
            if isinstance(default, bytes):
                default = default.decode()
            if wide and isinstance(value, np.float32) and name in declared:
                written[name] = number_text(value, "f64")
                continue
            if isinstance(value, (str, int, float, np.float32)) \
                    and value == default and name in declared:
                continue
            if name not in declared:
                if value == default:
                    continue
                raise Unsupported(f"the rule has no attribute `{name}`")
            written[name] = _attribute_text(value, name)
        return written

    def types(self, op: str, types: dict, attributes: str) -> dict:
        """(dtype, shape) of each result that a call has, by name. `types` has
        a text for each tensor, a list of them for a variadic input."""
        key = (op, json.dumps(types), attributes)
        if key not in self._types:
            builder = self.rules.builder()
            arguments = {}
            for name, kind in types.items():
                if isinstance(kind, list):
                    arguments[name] = [
                        None if k is None else builder.input(f"{name}.{i}", k)
                        for i, k in enumerate(kind)]
                else:
                    arguments[name] = builder.input(name, kind)
            try:
                made = builder.call(f"onnx.{op}", arguments, attributes)
            except Error as error:
                raise Unsupported(str(error)) from error
            found = {}
            for result, value in zip(self.describe(op)["results"], made):
                if value is not None:
                    kind = builder.type(value)
                    found[result["name"]] = (
                        kind.dtype, tuple(parse(s) for s in kind.shape))
            self._types[key] = found
        return self._types[key]

    def _results(self, body: Body, node: onnx.NodeProto, rule: dict,
                 outputs: dict, template: str, operands: list) -> list:
        names = [r["name"] for r in rule["results"]]
        if len(names) == 1:
            dtype, shape = next(iter(outputs.values()))
            return [body.emit(node.output[0], dtype, shape, template,
                              *operands)]
        record = body.emit(node.name or node.op_type, "f32", (), template,
                           *operands)
        results: list = [None] * len(node.output)
        for i, output in enumerate(node.output):
            if not output:
                continue
            if i >= len(names) or names[i] not in outputs:
                raise Unsupported(f"it has no result {i} ({output})")
            dtype, shape = outputs[names[i]]
            results[i] = body.emit(output, dtype, shape,
                                   "{0}." + names[i], record)
        return results


def _attribute_text(value, name: str):
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_attribute_text(v, name) for v in value) + "]"
    if isinstance(value, (float, np.float32)):
        return number_text(value, "f32")
    if isinstance(value, int):
        return str(value)
    raise Unsupported(f"its attribute `{name}` is a {type(value).__name__}")


def _drop_defaults(op: str, attributes: dict, known: dict) -> None:
    """Leaves out lists that say nothing, and what has no meaning here."""
    if known.get("axes"):
        attributes.pop("noop_with_empty_axes", None)
    for name, idle in (("strides", 1), ("dilations", 1), ("pads", 0)):
        if name in attributes and all(v == idle for v in attributes[name]):
            del attributes[name]
    if op == "Conv":
        attributes.pop("kernel_shape", None)


def convert(body: Body, name: str, value: Value, dtype: str) -> Value:
    """value as dtype."""
    if value.dtype == dtype:
        return value
    if value.static is not None and dtype in NUMPY:
        if value.static.dtype != object:
            with np.errstate(all="ignore"):
                return static_value(value.static.astype(NUMPY[dtype]), name,
                                    dtype)
        if dtype in ("i32", "i64"):
            return Value(dtype, value.shape, None, value.static, name)
    return body.emit(name, dtype, value.shape,
                     f"convert({{0}}, dtype: {dtype})", value)


def reshape(body: Body, name: str, value: Value, shape) -> Value:
    """value with its elements, row by row, in another shape."""
    shape = tuple(shape)
    if value.shape == shape:
        return value
    if value.static is not None and all(isinstance(s, int) for s in shape):
        return Value(value.dtype, shape, None, value.static.reshape(shape),
                     name)
    return body.emit(name, value.dtype, shape,
                     f"reshape({{0}}, shape: {sizes_text(shape)})", value)
