"""An ONNX model as a function that runs, differentiates, batches and compiles.

    model = cleave.import_onnx("model.onnx")
    model(images)                          # arrays in, arrays out
    model(image=images)                    # by the model's own names
    cleave.grad(lambda x: model(x)[0])(x)  # a function like any other
    model.save("folder")                   # model.rules, model.safetensors
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..tracing import Tracer, inline
from . import safetensors_file
from .importer import Source, import_text
from .names import identifier


class ImportedModel:
    """A function of a model's inputs; its parameters are part of it.

    `source` is the text of the rule file, `rules` the rule set that it extends,
    `parameters` the arrays that the function takes behind its inputs, by name.
    """

    def __init__(self, base, source: Source):
        self.source = source.text
        self.name = source.name
        self.rules = base.load(source.text)
        self.parameters: dict[str, np.ndarray] = dict(source.parameters)
        self.original_names = dict(source.original_names)
        self.op_types = dict(source.op_types)
        self.inputs = [name for name, _, _ in source.inputs]
        self.outputs = [name for name, _, _ in source.outputs]
        self._graph = None
        self._kernel = None
        types = ", ".join(f"{n}: {d}[{', '.join(str(s) for s in shape)}]"
                          for n, d, shape in source.inputs)
        self.__name__ = self.name
        self.__doc__ = f"{self.name}({types}), imported from ONNX."

    @property
    def graph(self):
        """The model as a graph: its inputs, then its parameters."""
        if self._graph is None:
            self._graph = self.rules.function(self.name)
        return self._graph

    @property
    def kernel(self):
        """The model's machine code; it is compiled on first use."""
        if self._kernel is None:
            self._kernel = self.graph.compile()
        return self._kernel

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The model's results: one array, or a tuple of several."""
        return self.apply(self.parameters, *arrays, **named)

    def apply(self, parameters: Mapping[str, Any], *arrays: Any,
              **named: Any) -> Any:
        """The model with these parameters in the place of its own: to train
        them, or to differentiate in them."""
        values = self._values(arrays, named)
        values += [parameters[name] for name in self.parameters]
        tracer = next((v for v in values if isinstance(v, Tracer)), None)
        if tracer is None:
            results = self.kernel(*values)
        else:
            results = tuple(inline(tracer, self._fitting(values), values))
        return results[0] if len(results) == 1 else results

    def _fitting(self, values):
        """The graph with the sizes that these arrays have."""
        sizes: dict[str, str] = {}
        for (_, kind), value in zip(self.graph.inputs, values):
            for size, given in zip(kind.shape, value.shape):
                if isinstance(size, str) and size.isidentifier():
                    sizes.setdefault(size, str(given))
        return self.graph.substitute(sizes) if sizes else self.graph

    def _values(self, arrays, named) -> list:
        values = list(arrays)
        if len(values) > len(self.inputs):
            raise TypeError(f"{self.name} takes {len(self.inputs)} inputs, "
                            f"not {len(values)}")
        rest = {identifier(name): value for name, value in named.items()}
        for name in self.inputs[len(values):]:
            plain = name if name in rest else name.rstrip("_0123456789")
            if plain not in rest:
                raise TypeError(f"{self.name} lacks the input `{name}`")
            values.append(rest.pop(plain))
        if rest:
            raise TypeError(f"{self.name} has no input `{next(iter(rest))}`; "
                            f"it takes {', '.join(self.inputs)}")
        return [v if hasattr(v, "shape") else np.asarray(v) for v in values]

    def save(self, directory) -> list[str]:
        """Writes model.rules and model.safetensors; gives their paths."""
        folder = os.fspath(directory)
        os.makedirs(folder, exist_ok=True)
        rules = os.path.join(folder, "model.rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(self.source)
        tensors = os.path.join(folder, "model.safetensors")
        safetensors_file.write(tensors, self.parameters, self.original_names)
        return [rules, tensors]

    def compile_library(self, folder, name: str | None = None) -> list[str]:
        """A static library for C with a header, which takes the parameters as
        arguments behind the inputs; the names of its files."""
        return self.graph.compile_library(name or self.name, folder)

    def __repr__(self) -> str:
        return f"<{self.__doc__[:-1]}>"


def import_onnx(model, directory=None, *, name: str = "model",
                sizes: Mapping[str, int] | None = None,
                values: Mapping[str, Any] | None = None,
                rules=None) -> ImportedModel:
    """An ONNX model as rules, and as a function.

    `model` is a path, the bytes of a file or an `onnx.ModelProto`. With
    `directory`, model.rules and model.safetensors are written there. `sizes`
    gives numbers for the model's variable sizes, and `values` fixes inputs,
    which then are inputs no more: what depends on them is decided at once.

    Raises UnimplementedError, with a line for each node that has no rule or
    asks for what its rule lacks, before anything is written or run.
    """
    if rules is None:
        from ..rules import load
        rules = load()
    source = import_text(rules, model, name, sizes, values)
    imported = ImportedModel(rules, source)
    if directory is not None:
        imported.save(directory)
    return imported
