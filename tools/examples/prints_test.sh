#!/bin/bash
# prints_test.sh GOLDEN PROGRAM ARG...: the program ends well, and prints the
# lines of the file GOLDEN.
set -euo pipefail
golden=$1
shift
printed=$("$@")
diff -u "$golden" - <<<"$printed"
