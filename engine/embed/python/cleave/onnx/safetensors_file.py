"""Tensors in the safetensors format, written and read with numpy alone.

    write("model.safetensors", {"kernel": array}, {"kernel": "Conv_0/kernel:0"})
    read("model.safetensors")   # {"kernel": array}

A file has the length of its header as 8 bytes, the header as JSON, and the
elements of all tensors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import numpy as np

_NAMES = {"float32": "F32", "float64": "F64", "float16": "F16",
          "bfloat16": "BF16", "int8": "I8", "int16": "I16", "int32": "I32",
          "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32",
          "uint64": "U64", "bool": "BOOL", "complex64": "C64",
          "complex128": "C128"}
_DTYPES = {text: name for name, text in _NAMES.items()}


def write(path, tensors: Mapping[str, np.ndarray],
          metadata: Mapping[str, str] | None = None) -> None:
    """Writes the tensors, and texts beside them, as a file."""
    header: dict = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    at = 0
    for name, array in tensors.items():
        size = array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype.name],
                        "shape": list(array.shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.fspath(path), "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())


def read(path) -> dict[str, np.ndarray]:
    """The tensors of a file, by name."""
    with open(os.fspath(path), "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = memoryview(data)[8 + length:]
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        dtype = _DTYPES[entry["dtype"]]
        if dtype == "bfloat16":
            import ml_dtypes
            kind = np.dtype(ml_dtypes.bfloat16)
        else:
            kind = np.dtype(dtype)
        tensors[name] = np.frombuffer(body[first:last], kind).reshape(
            entry["shape"])
    return tensors
