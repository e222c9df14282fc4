"""What runs a graph within a program of XLA, made known to JAX.

`cleave.jax` registers it as it is imported. A process that loads an exported
program imports `cleave.jax` first: the program carries its graphs, and this is
what reads them.

    exported = jax.export.export(jax.jit(f), disabled_checks=EXPORT_CHECKS)(x)
"""

from __future__ import annotations

import ctypes
import os

import cleave
import jax
import jax.ffi

from ..hosts import prepare

# The name of the call in programs of XLA.
TARGET = "cleave_graph"

# jax.export refuses calls that it does not know to be stable. This one is: its
# graph is made of primitives, whose meaning does not change.
EXPORT_CHECKS = (jax.export.DisabledSafetyCheck.custom_call(TARGET),)


def _load() -> ctypes.CDLL:
    # XLA compiles kernels without a word to Python.
    prepare()
    path = os.path.join(os.path.dirname(cleave.__file__), "libcleave_xla.so")
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"cleave.jax needs {path}, which cannot be loaded: {error}"
        ) from error


_library = _load()
_library.cleave_xla_compiled_count.restype = ctypes.c_int64


def _capsule(symbol: str) -> object:
    address = ctypes.addressof(ctypes.c_char.in_dll(_library, symbol))
    return jax.ffi.pycapsule(ctypes.c_void_p(address))


def _register() -> None:
    # The type first: the handlers tell XLA its id as they are registered.
    jax.ffi.register_ffi_type(
        "cleave_kernel",
        {"type_id": _capsule("cleave_xla_type_id"),
         "type_info": _capsule("cleave_xla_type_info")},
        platform="cpu")
    jax.ffi.register_ffi_target(
        TARGET,
        {"instantiate": jax.ffi.pycapsule(_library.cleave_xla_instantiate),
         "execute": jax.ffi.pycapsule(_library.cleave_xla_execute)},
        platform="cpu")


_register()


def compiled_count() -> int:
    """How many kernels this process compiled for programs of XLA."""
    return _library.cleave_xla_compiled_count()
