"""Makes case suites of calls of ONNX's ops.

    tools/python --with onnx testing/conformance/make_onnx_cases.py \\
        calls.py -o testing/cases/onnx

A file of calls has a function `calls()`, which returns {"onnx.Op": [{"inputs":
{name: array, list of arrays or None}, "attributes": {name: value}, "outputs":
[array, ..], "domain": "", "opset": 28}, ..]}, where domain and opset may be
left out. Each op becomes NAME.json and NAME.safetensors.

    -o DIR        where the suites go
    --most N      at most so many calls of each op (8)
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np
import onnx
from make_torch_cases import calls_of, some_of
from safetensors.numpy import save_file

# (rtol, atol) of results in these dtypes.
# Attributes of models have 32 bits.
_TOLERANCES = {"float64": (2e-6, 1e-8), "float32": (1e-5, 1e-6),
               "float16": (4e-3, 1e-3)}


class Suite:
    """The cases of one op, and their tensors."""

    def __init__(self, name, source):
        self.name = name
        self.source = source
        self.cases = []
        self.tensors = {}
        self.domain = ""
        self.opset = None

    def keep(self, key, array):
        self.tensors[key] = np.ascontiguousarray(array).reshape(
            np.shape(array))
        return {"tensor": key}

    def value(self, key, x):
        """An input or an attribute as a value of the format."""
        if x is None:
            return {"none": True}
        if isinstance(x, np.ndarray | np.generic):
            return self.keep(key, x)
        if isinstance(x, bool | int):
            return {"int": int(x)}
        if isinstance(x, float):
            return {"float": x if math.isfinite(x) else str(x)}
        if isinstance(x, str):
            return {"str": x}
        if isinstance(x, list | tuple):
            return {"list": [self.value(f"{key}.{i}", e)
                             for i, e in enumerate(x)]}
        raise TypeError(f"{self.name}: no value of the format: {x!r}")

    def add(self, call):
        number = len(self.cases)
        self.domain = call.get("domain", "")
        schema = onnx.defs.get_schema(
            self.name.removeprefix("onnx."), call.get("opset", 28) if not
            self.domain else 1, self.domain)
        self.opset = schema.since_version
        arguments = {n: self.value(f"{number}.{n}", x)
                     for n, x in call["inputs"].items()}
        for name, x in call["attributes"].items():
            arguments[name] = self.value(f"{number}.{name}", x)
        outputs = [np.asarray(x) for x in call["outputs"]]
        tolerances = [_TOLERANCES.get(str(x.dtype), (0.0, 0.0))
                      for x in outputs]
        self.cases.append({
            "id": f"{self.name.removeprefix('onnx.')}#{number}",
            "args": arguments,
            "outputs": [self.keep(f"{number}.out{i}", x)
                        for i, x in enumerate(outputs)],
            "rtol": max([t[0] for t in tolerances], default=0.0),
            "atol": max([t[1] for t in tolerances], default=0.0),
        })

    def write(self, folder):
        document = {"format": "cleave-cases/1", "op": self.name,
                    "opset": self.opset, "source": self.source,
                    "cases": self.cases}
        if self.domain:
            document["domain"] = self.domain
        (folder / f"{self.name}.json").write_text(
            json.dumps(document, separators=(",", ":")) + "\n")
        save_file(self.tensors, folder / f"{self.name}.safetensors")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", dest="folder", type=pathlib.Path, required=True)
    parser.add_argument("--most", type=int, default=8)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    source = f"onnx {onnx.__version__}, onnx.reference"
    made = 0
    for path in given.calls:
        for name, calls in calls_of(path).items():
            if (given.folder / f"{name}.json").exists():
                continue  # what others made is kept
            suite = Suite(name, source)
            for call in some_of(calls, given.most):
                suite.add(call)
            suite.write(given.folder)
            made += 1
    print(f"{made} suites")
    return 0


if __name__ == "__main__":
    sys.exit(main())
