"""Cleave: operators with their meaning, and transforms of functions of arrays.

    import cleave
    import numpy

    rules = cleave.load()                         # the shipped operators
    rules.softmax(numpy.ones(3, numpy.float32))

    f = cleave.jit(cleave.grad(lambda x: (x * x).sum()))
    f(numpy.arange(3.0))

`load` reads rule files beside the shipped ones. Functions of arrays, which are
traced, can be differentiated (grad, vjp, jvp, ..), batched (vmap), compiled
(jit, compile_library), and checked (check, equivalent). Arrays of numpy, torch
and JAX go in, and arrays of the same kind come out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _native, namespace
from .calls import limits
from .errors import (CancelledError, DeadlineExceededError, Error,
                     FailedPreconditionError, InternalError,
                     InvalidArgumentError, NotFoundError, OutOfRangeError,
                     ResourceExhaustedError, TracingError, UnimplementedError)
from .functions import Function, Op, Primitive
from .graph_making import checkpoint_name, define, jit, make_graph
from .graphs import NOT_MAPPED, SPLIT, Aot, Builder, Graph, Kernel
from .rules import Rules, load, op
from .tracing import Tracer
from .transforms import (grad, hessian, jacfwd, jacrev, jvp, linear_transpose,
                         linearize, value_and_grad, vjp, vmap)
from .types import ShapeDtype, TensorType

__version__ = _native.version()

if TYPE_CHECKING:
    from .ahead_of_time import AotResult, Partition, aot, min_cut_partition
    from .checking import DisagreementError, Report, check, equivalent
    from .tools import (compile_library, coverage, derive, explain,
                        import_onnx)

# Names that are imported when first used, since few programs need them.
_LATER = {
    "AotResult": "ahead_of_time", "Partition": "ahead_of_time",
    "aot": "ahead_of_time", "min_cut_partition": "ahead_of_time",
    "DisagreementError": "checking", "Report": "checking", "check": "checking",
    "equivalent": "checking", "compile_library": "tools", "coverage": "tools",
    "derive": "tools", "explain": "tools", "import_onnx": "tools"}
_SUBPACKAGES = ("torch", "jax", "onnx")


def __getattr__(name: str) -> Any:
    from importlib import import_module
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}",
                             name=name)
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_SUBPACKAGES})
