#!/bin/bash
# run_fuzz_abi.sh FUZZ_ABI SECONDS: random calls of the C interface, of another
# seed each day; the seed is printed.
set -euo pipefail
export CLEAVE_CACHE=$TEST_TMPDIR/cache
exec "$1" --seed "$(date +%Y%m%d)" --seconds "$2"
