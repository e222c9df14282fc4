"""PyTorch schemas of ops.

    schema_of(rules.describe("softmax"))
        # softmax(Tensor x, *, int axis=-1) -> Tensor
"""

from __future__ import annotations

_KINDS = {
    "bool": "bool", "int": "int", "axis": "int", "dim": "SymInt",
    "int[]": "int[]", "axes": "int[]", "dim[]": "SymInt[]", "real": "float",
    "scalar": "Scalar", "real[]": "float[]", "scalar[]": "float[]",
    "str": "str", "enum": "str", "dtype": "ScalarType",
}


def _attribute(about: dict) -> str | None:
    """An attribute as a keyword argument. One that has a default is optional
    here, and the op fills it in."""
    kind = _KINDS.get(about["type"])
    if kind is None:
        return None
    if about["required"]:
        return f"{kind} {about['name']}"
    return f"{kind}? {about['name']}=None"


def schema_of(about: dict) -> str | None:
    """The schema, None where PyTorch's types cannot say the signature."""
    inputs = []
    for value in about["inputs"]:
        if value["variadic"]:
            inputs.append(f"Tensor?[] {value['name']}" if value["optional"]
                          else f"Tensor[] {value['name']}")
        elif value["optional"]:
            inputs.append(f"Tensor? {value['name']}=None")
        else:
            inputs.append(f"Tensor {value['name']}")
    attributes = []
    for value in about["attributes"]:
        text = _attribute(value)
        if text is None:
            return None
        attributes.append(text)
    if attributes:
        inputs += ["*", *attributes]
    # An optional input before one that is required gets no default.
    seen = False
    for k in reversed(range(len(about["inputs"]))):
        value = about["inputs"][k]
        if seen and inputs[k].endswith("=None"):
            inputs[k] = inputs[k][:-len("=None")]
        seen = seen or not value["optional"]
    count = len(about["results"])
    results = "Tensor" if count == 1 else \
        "(" + ", ".join(["Tensor"] * count) + ")"
    return f"{about['name']}({', '.join(inputs)}) -> {results}"
