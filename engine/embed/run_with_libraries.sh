#!/bin/bash
# run_with_libraries.sh TEST.py LIBRARY.. [-- ARGUMENT..]: runs the test with the
# arguments and a folder that has the libraries, as an installed one would.
set -euo pipefail

test=$1
shift
libraries=$TEST_TMPDIR/libraries
mkdir "$libraries"
while (($#)) && [[ $1 != -- ]]; do
  cp -L "$1" "$libraries"
  shift
done
export CLEAVE_CACHE=
exec python3 "$test" "${@:2}" "$libraries"
