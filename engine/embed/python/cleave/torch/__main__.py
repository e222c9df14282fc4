"""`python -m cleave.torch check --all`: what is off between PyTorch's ops and
our rules for them."""

import sys

from cleave.torch.check_all import main

if __name__ == "__main__":
    if sys.argv[1:2] != ["check"]:
        sys.exit("usage: python -m cleave.torch check [--all] [OP ..]")
    sys.exit(main(sys.argv[2:]))
