"""`python -m cleave.onnx`: models as rules and tensors, and functions as models.

    python -m cleave.onnx import MODEL.onnx -o DIR    # model.rules, .safetensors
    python -m cleave.onnx export FILE.rules --fn F -o MODEL.onnx
    python -m cleave.onnx audit [--op GLOB]    # the bodies that ONNX ships

`tools/cleave import`, `export` and `audit-onnx` run it.
"""

from __future__ import annotations

import argparse
import sys

from ..errors import Error
from ..rules import load
from .export import export_onnx
from .model import import_onnx


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cleave", description=__doc__,
                                     formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    reader = verbs.add_parser("import", help="Write an ONNX model as rules.")
    reader.add_argument("model", help="the file of the model")
    reader.add_argument("-o", "--output", required=True,
                        help="the folder to write to")
    reader.add_argument("--name", default="model",
                        help="the name of the function")
    verbs.add_parser("audit", add_help=False,
                     help="Compare the bodies that ONNX ships with our rules.")
    writer = verbs.add_parser("export", help="Write a function as a model.")
    writer.add_argument("rules", nargs="+",
                        help="rule files beside the shipped ones")
    writer.add_argument("--fn", required=True, help="the declared function")
    writer.add_argument("-o", "--output", required=True,
                        help="the model to write")
    # Models are what it writes anyway; other tools want to be told.
    writer.add_argument("--onnx", action="store_true", help=argparse.SUPPRESS)
    for verb in (reader, writer):
        verb.add_argument("--size", action="append", default=[],
                          metavar="NAME=NUMBER",
                          help="a number for a variable size")
    return parser


def _sizes(parser: argparse.ArgumentParser,
           entries: list[str]) -> dict[str, int]:
    sizes = {}
    for entry in entries:
        name, _, number = entry.partition("=")
        if not number.isdigit():
            parser.error(f"--size {entry}: it has the form n=4")
        sizes[name] = int(number)
    return sizes


def _import(options: argparse.Namespace, sizes: dict[str, int]) -> None:
    model = import_onnx(options.model, options.output, name=options.name,
                        sizes=sizes)
    nodes = sum(model.op_types.values())
    print(f"{options.output}/model.rules: {model.name}, {nodes} nodes of "
          f"{len(model.op_types)} ops")
    print(f"{options.output}/model.safetensors: {len(model.parameters)} "
          "tensors")


def _export(options: argparse.Namespace, sizes: dict[str, int]) -> None:
    graph = load(*options.rules).function(options.fn)
    if sizes:
        graph = graph.substitute(sizes)
    export_onnx(graph, options.output, name=options.fn)
    print(f"{options.output}: {options.fn}")


def main(arguments: list[str] | None = None) -> int:
    """The command; 0, or 2 where a model cannot be read or written. An audit
    has statuses of its own."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["audit"]:
        from .audit import main as audit
        return audit(arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    sizes = _sizes(parser, options.size)
    try:
        (_import if options.verb == "import" else _export)(options, sizes)
    except (Error, OSError) as error:
        print(f"cleave: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
