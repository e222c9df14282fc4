"""Cleave's operators as functions of JAX.

    import cleave, cleave.jax
    rules = cleave.load("soft_argmax.rules")
    soft_argmax = cleave.jax.wrap(rules.soft_argmax)

    soft_argmax(x, axis=-1)
    jax.jit(jax.vmap(jax.grad(lambda x: soft_argmax(x, beta=2.0))))(xs)

`wrap` takes an op, a declared fn or a Graph. All transforms of JAX apply to the
result, to any depth, and ask Cleave's rules for what they need. Programs run
Cleave's kernels on the CPU.

`EXPORT_CHECKS` is what `jax.export.export` needs as its `disabled_checks`.
"""

from cleave.jax.handler import EXPORT_CHECKS
from cleave.jax.wrapper import wrap

__all__ = ["EXPORT_CHECKS", "wrap"]
