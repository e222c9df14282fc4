"""Whether PyTorch is there, the reason to skip where it is not, and samples of
its ops."""

import functools
import importlib.util
import warnings

HAVE_TORCH = importlib.util.find_spec("torch") is not None
WHY = "PyTorch is not installed"


@functools.cache
def samples_of(name: str):
    """The aten op, and calls of it in f64 from PyTorch's own tests."""
    import torch
    from cleave.torch.check import aten_op, opinfo_calls
    op = aten_op(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = opinfo_calls(op, 12, torch.float64)
    return op, found
