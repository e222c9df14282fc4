#!/bin/bash
# source_digest_test.sh DIGEST FILE...: the header that source_digest wrote has
# the hash of the files, in the order of their names.
set -euo pipefail

digest=$1
shift
want=$(sha256sum -- "$@" | cut -c1-64 | sha256sum | cut -c1-64)
if [[ $(<"$digest") != "#define DIGEST \"$want\"" ]]; then
  echo "not of $want:" >&2
  cat "$digest" >&2
  exit 1
fi
