#!/bin/bash
# run_install_test.sh INSTALL LIBRARY..: install_test.py, with the libraries in
# one folder, as tools/install takes them.
set -euo pipefail

install=$1
shift
libraries=$TEST_TMPDIR/libraries
mkdir "$libraries"
cp -L "$@" "$libraries"
exec python3 "$(dirname "$0")/install_test.py" "$install" "$libraries"
