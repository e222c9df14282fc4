"""Cleave's rules in PyTorch.

    import cleave.torch

    ns = cleave.torch.register()           # every op: ns.softmax(x, axis=-1)
    report = cleave.torch.patch_aten()     # what PyTorch's own ops lack
    print(cleave.torch.printed(graph).source)
    print(cleave.torch.check("aten.huber_loss"))

torch.md beside the package's sources has the tour.
"""

from __future__ import annotations

from cleave.torch.check import CheckTable, check
from cleave.torch.check_all import check_all
from cleave.torch.patch import Report, patch_aten, unpatch
from cleave.torch.printer import Unprintable, print_graph
from cleave.torch.program import Program, printed
from cleave.torch.register import Namespace, register

__all__ = ["CheckTable", "Namespace", "Program", "Report", "Unprintable",
           "check", "check_all", "patch_aten", "print_graph", "printed",
           "register", "unpatch"]
