"""Why PyTorch's decompositions and derivatives are off, as their formulas were
read by hand."""

from cleave.auditing import Cause

CAUSES: list[Cause] = []
