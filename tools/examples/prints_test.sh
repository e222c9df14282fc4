#!/bin/bash
# prints_test.sh PATTERN PROGRAM ARG...: the program ends well, and prints a
# line that the pattern matches.
set -euo pipefail
pattern=$1
shift
printed=$("$@")
echo "$printed"
grep -q -e "$pattern" <<<"$printed"
