"""torch.ops.cleave.call: a graph on tensors, as one op that PyTorch's tracers
record and that computes by a compiled kernel.

    torch.ops.cleave.call([x, w], "graph (%x: f32[n], ..) -> (..) {..}")

The text is the program: an exported model that holds such a call needs `import
cleave.torch`, and the shipped rules, where it is loaded.
"""

from __future__ import annotations

import torch

_PROGRAMS: dict = {}
_library = torch.library.Library("cleave", "FRAGMENT")
_library.define("call(Tensor[] inputs, str graph) -> Tensor[]",
                tags=(torch.Tag.pt2_compliant_tag,))


def call(program, tensors) -> tuple:
    """The program on tensors that a tracer follows."""
    if program.text is None:
        text = str(program.graph)
        if program.graph.rules is not _shipped():
            # Calls mean something by their rules; primitives by themselves.
            text = str(program.graph.expand())
        _PROGRAMS.setdefault(text, program)
        program.text = text
    return tuple(torch.ops.cleave.call(list(tensors), program.text))


def _shipped():
    import cleave
    return cleave.load()


def _program(text: str):
    program = _PROGRAMS.get(text)
    if program is None:
        from cleave.torch.program import Program
        program = _PROGRAMS[text] = Program.of(_shipped().parse(text))
    return program


def _run(inputs, graph):
    # The outputs of an op do not share memory with its inputs.
    return list(_program(graph).run_kernel(inputs))


def _fake(inputs, graph):
    return _program(graph).fake(inputs)


_library.impl("call", _run, "CPU")
torch.library.register_fake("cleave::call", _fake, lib=_library)
