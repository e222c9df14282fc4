"""PyTorch, JAX and Cleave in one process, imported in each order: none crashes
another, and each still computes what it did.

    python -m unittest torch_import_orders

Each order is a process of its own. Where a framework is missing, the orders
that need it are skipped, and the last line says how many ran.
"""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
import time
import unittest

HAVE = {name: importlib.util.find_spec(name) is not None
        for name in ("torch", "jax")}

# The three that load native libraries, in all orders; then the orders where
# Cleave brings the framework with it.
ORDERS = [(*order, "cleave.torch", "cleave.jax")
          for order in itertools.permutations(("torch", "jax", "cleave"))]
ORDERS += [("cleave.torch", "cleave.jax"), ("cleave.jax", "cleave.torch"),
           ("torch", "cleave.jax", "cleave.torch"),
           ("jax", "cleave.torch", "cleave.jax"),
           ("torch", "cleave.torch"), ("cleave", "torch", "cleave.torch"),
           ("cleave.torch",),
           ("jax", "cleave.jax"), ("cleave", "jax", "cleave.jax"),
           ("cleave.jax",)]

# Compiles a kernel, differentiates, and uses each framework for itself and by
# Cleave, beginning with the one that was imported last.
PROGRAM = '''
import numpy as np

x = np.array([0.5, -1.0, 2.0], np.float32)
p = np.exp(x) / np.exp(x).sum()
weights = np.array([1.0, 2.0, 4.0], np.float32)
wanted = p * (weights - (p * weights).sum())


def of_cleave():
    import cleave
    rules = cleave.load()
    step = cleave.jit(lambda v: (rules.softmax(v) * weights).sum())
    np.testing.assert_allclose(step(x), (p * weights).sum(), rtol=1e-6)
    got = cleave.grad(lambda v: (rules.softmax(v) * weights).sum())(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def of_torch():
    import torch
    import cleave.torch
    v = torch.tensor(x)
    w = torch.tensor(weights)
    ns = cleave.torch.register()
    for softmax in (lambda t: torch.softmax(t, 0),
                    lambda t: ns.softmax(t, axis=0)):
        got = torch.func.grad(lambda t: (softmax(t) * w).sum())(v)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)
    square = torch.eye(64) * 3 + 1
    torch.testing.assert_close(square @ torch.linalg.inv(square),
                               torch.eye(64), rtol=0, atol=1e-4)
    target = torch.tensor([1])
    cleave.torch.patch_aten("multi_margin_loss*")
    loss = lambda t: torch.nn.functional.multi_margin_loss(t[None], target)
    tangent = torch.func.jvp(loss, (v,), (w,))[1]
    torch.testing.assert_close(tangent, (torch.func.grad(loss)(v) * w).sum())


def of_jax():
    import jax
    import jax.numpy as jnp
    import cleave
    import cleave.jax
    softmax = cleave.jax.wrap(cleave.load().softmax)
    for function in (jax.nn.softmax, softmax):
        pick = lambda t: (function(t) * weights).sum()
        got = jax.jit(jax.grad(pick))(jnp.asarray(x))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    square = jnp.eye(64) * 3 + 1
    np.testing.assert_allclose(square @ jnp.linalg.inv(square), jnp.eye(64),
                               atol=1e-4)


parts = {"cleave": of_cleave, "torch": of_torch, "jax": of_jax}
names = [name.rpartition(".")[2] for name in reversed(ORDER)]
for name in dict.fromkeys([*names, "cleave"]):
    parts[name]()
print("right")
'''


def _needs(order) -> list[str]:
    return [f for f in ("torch", "jax")
            if any(name.rpartition(".")[2] == f for name in order)]


class ImportOrders(unittest.TestCase):
    """Every order of ORDERS whose frameworks are installed."""

    def test_orders(self):
        ran = 0
        for order in ORDERS:
            missing = [f for f in _needs(order) if not HAVE[f]]
            if missing:
                continue
            text = "".join(f"import {name}\n" for name in order) \
                + f"ORDER = {order!r}\n" + PROGRAM
            with self.subTest(order=" ".join(order)):
                begin = time.monotonic()
                done = subprocess.run([sys.executable, "-c", text], text=True,
                                      capture_output=True, timeout=900)
                print(f"{time.monotonic() - begin:6.1f} s  {' '.join(order)}",
                      file=sys.stderr, flush=True)
                self.assertEqual(
                    (done.returncode, done.stdout.strip()[-5:]), (0, "right"),
                    done.stderr[-2000:])
                ran += 1
        missing = [f for f in HAVE if not HAVE[f]]
        print(f"{ran} of {len(ORDERS)} orders ran"
              + (f"; the others need {' and '.join(missing)}" if missing
                 else ""), file=sys.stderr)
        if not ran:
            self.skipTest(f"{len(ORDERS)} orders need {' or '.join(missing)}")


if __name__ == "__main__":
    unittest.main()
