"""What is off between PyTorch's ops and our rules for them.

    python -m cleave.torch check --all      # on the samples of PyTorch's tests
    python -m cleave.torch audit            # on those of the checker

The audit is `tools/cleave audit-torch`, too.
"""

import sys

_USAGE = "usage: python -m cleave.torch check [--all] [OP ..]\n" \
         "       python -m cleave.torch audit [--op GLOB] .."


def _main() -> int:
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb == "check":
        from cleave.torch.check_all import main
    elif verb == "audit":
        from cleave.torch.audit import main
    else:
        print(_USAGE, file=sys.stderr)
        return 2
    return main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(_main())
