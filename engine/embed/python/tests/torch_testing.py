"""Whether PyTorch is there, and the reason to skip where it is not."""

import importlib.util

HAVE_TORCH = importlib.util.find_spec("torch") is not None
WHY = "PyTorch is not installed"
