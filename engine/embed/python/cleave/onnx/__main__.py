"""`python -m cleave.onnx MODEL.onnx -o DIR`: model.rules, model.safetensors."""

from __future__ import annotations

import argparse
import sys

from ..errors import Error
from .model import import_onnx


def main(arguments: list[str] | None = None) -> int:
    """The command; 0, or 2 where the model cannot be imported."""
    parser = argparse.ArgumentParser(
        prog="cleave import", description="Writes an ONNX model as rules.")
    parser.add_argument("model", help="the file of the model")
    parser.add_argument("-o", "--output", required=True,
                        help="the folder to write to")
    parser.add_argument("--name", default="model",
                        help="the name of the function")
    parser.add_argument("--size", action="append", default=[],
                        metavar="NAME=NUMBER",
                        help="a number for a variable size")
    options = parser.parse_args(arguments)
    sizes = {}
    for entry in options.size:
        name, _, number = entry.partition("=")
        if not number.isdigit():
            parser.error(f"--size {entry}: it has the form n=4")
        sizes[name] = int(number)
    try:
        model = import_onnx(options.model, options.output, name=options.name,
                            sizes=sizes)
    except (Error, OSError) as error:
        print(f"cleave: {error}", file=sys.stderr)
        return 2
    nodes = sum(model.op_types.values())
    print(f"{options.output}/model.rules: {model.name}, {nodes} nodes of "
          f"{len(model.op_types)} ops")
    print(f"{options.output}/model.safetensors: {len(model.parameters)} "
          "tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
