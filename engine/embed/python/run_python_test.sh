#!/bin/bash
# run_python_test.sh WHEEL LIBHALIDE FRAMEWORK TEST.py [--update]: runs a test file
# with the wheel unpacked on Python's path. FRAMEWORK is numpy/__init__.py, for Debian's
# Python, or what tools/python installs: torch, jax, onnx. Where tools/python was
# never run with that, the tests are counted as skipped, and nothing is tested.
set -euo pipefail

wheel=$1
halide=$2
framework=$3
test=$4
if [[ ${5-} == --update ]]; then
  export CLEAVE_UPDATE=1
fi
# `bazel run` has no folder for it.
TEST_TMPDIR=${TEST_TMPDIR:-$(mktemp -d)}

python=/usr/bin/python3
numpy=
if [[ $framework == */* ]]; then
  numpy=:$(dirname "$(dirname "$(readlink -f "$framework")")")
else
  # A test has no $HOME of its own.
  home=$(getent passwd "$(id -u)" | cut -d: -f6)
  python=${XDG_CACHE_HOME:-$home/.cache}/cleave/python-$framework/bin/python
  if [[ ! -x $python ]]; then
    echo "SKIPPED: $(grep -c 'def test_' "$test") tests of $framework:" \
      "\`tools/python --with $framework\` was not run on this machine"
    exit 0
  fi
fi
site=$TEST_TMPDIR/site
"$python" -m zipfile -e "$wheel" "$site"
LD_LIBRARY_PATH=$(dirname "$(readlink -f "$halide")")
export LD_LIBRARY_PATH
# A library that is built for AddressSanitizer needs its runtime in front of all
# others, by the file name that the runtime knows itself by: the wheel's copy has
# another. Python itself frees not all that it has. Freed memory that is held back
# would look like a leak to the test that measures the process.
runtime=$(ldd "$site"/cleave/lib/libcleave.so | awk '/libasan/ { print $3 }')
if [[ -n $runtime ]]; then
  ln -s "$runtime" "$TEST_TMPDIR/libasan.so"
  export LD_PRELOAD=$TEST_TMPDIR/libasan.so
  export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0:quarantine_size_mb=4
fi
export CLEAVE_CACHE=$TEST_TMPDIR/cache
export PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$site:$(dirname "$test")$numpy exec "$python" -m unittest \
  "$(basename "$test" .py)"
