"""Shared by the tests of cleave.onnx: models that are made here, comparisons,
and why tests are skipped where packages are missing."""

from __future__ import annotations

import importlib.util

import numpy as np

HAVE_ONNX = importlib.util.find_spec("onnx") is not None
HAVE_RUNTIME = (HAVE_ONNX
                and importlib.util.find_spec("onnxruntime") is not None)
WHY_ONNX = "the package onnx is not installed"
WHY_RUNTIME = "the packages onnx and onnxruntime are not installed"

# Golden data of half precision is rounded at each step, ours once.
_HALVES = {"float16": (4e-3, 2e-3), "bfloat16": (3.2e-2, 1.6e-2)}


def model_of(text: str, **initializers):
    """A model from ONNX's own text form, with tensors of these names."""
    import onnx.parser
    from onnx import numpy_helper
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>\n' + text)
    for name, array in initializers.items():
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(array), name))
    return model


def runtime(model):
    """A function of named arrays that runs the model by onnxruntime."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    content = model if isinstance(model, (str, bytes)) \
        else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options)
    return lambda **arrays: session.run(None, arrays)


def assert_close(got, want, rtol: float = 1e-5, atol: float = 1e-6,
                 message: str = "") -> None:
    """Equal dtypes and shapes, and elements that are equal or close."""
    want = np.asarray(want)
    assert got.dtype == want.dtype, (message, got.dtype, want.dtype)
    assert got.shape == want.shape, (message, got.shape, want.shape)
    kind = want.dtype.name
    if want.dtype.kind not in "fc" and kind != "bfloat16":
        np.testing.assert_array_equal(got, want, message)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    relative, absolute = _HALVES.get(kind, (0, 0))
    # Sums of large terms cancel: the error is that of the largest.
    finite = np.abs(want[np.isfinite(want)]).max(initial=0)
    np.testing.assert_allclose(
        got, want, rtol=max(rtol, relative),
        atol=max(atol, absolute, 1e-6 * float(finite)), err_msg=message)
