"""How frameworks without DLPack's C functions import results: JAX, others."""

from __future__ import annotations

import sys
from typing import Any

from .errors import UnimplementedError


def import_like(memory: Any, like: Any) -> Any:
    """The memory as an array of the framework that `like` belongs to."""
    package = type(like).__module__.partition(".")[0]
    if package in ("jax", "jaxlib"):
        return sys.modules["jax"].dlpack.from_dlpack(memory)
    namespace = getattr(like, "__array_namespace__", None)
    if namespace is not None:
        return namespace().from_dlpack(memory)
    module = sys.modules.get(package)
    if hasattr(module, "from_dlpack"):
        return module.from_dlpack(memory)  # type: ignore[union-attr]
    raise UnimplementedError(
        f"arrays of {type(like).__module__}.{type(like).__qualname__} are not "
        "made: it has neither `__array_namespace__` nor `from_dlpack`", code=12)
