#!/bin/bash
# Runs the installer against stand-ins for dpkg-query, apt-cache, apt-get and
# sudo, which note how they were called.
set -uo pipefail

installer=$PWD/tools/install_prereqs
mapfile -t packages <tools/packages.txt
bin=$TEST_TMPDIR/bin
log=$TEST_TMPDIR/log
failures=0

stand_in() { # stand_in NAME BODY
  printf '#!/bin/bash\necho "%s $*" >>"%s"\n%s\n' "$1" "$log" "$2" >"$bin/$1"
  chmod +x "$bin/$1"
}

# A PATH that holds nothing but the stand-ins and what the script needs.
fresh_bin() {
  rm -rf "$bin" "$log"
  mkdir -p "$bin"
  touch "$log"
  for program in bash cat dirname env grep readlink sed; do
    ln -s "$(command -v $program)" "$bin/$program"
  done
  stand_in apt-cache 'exit 0'
  stand_in apt-get 'echo noise; exit 0'
}

all_installed='for p in "$@"; do
  case $p in --*) ;; *) echo "installed $p" ;; esac; done'
without_mpfr='for p in "$@"; do
  case $p in --* | libmpfr-dev) ;; *) echo "installed $p" ;; esac; done; exit 1'

run() { # run ARGUMENT...
  PATH=$bin "$installer" "$@" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err" \
    </dev/null
}

expect() { # expect DESCRIPTION COMMAND...
  local description=$1
  shift
  if ! "$@"; then
    echo "FAILED: $description" >&2
    sed 's/^/  stderr: /' "$TEST_TMPDIR/err" >&2
    sed 's/^/  call: /' "$log" >&2
    failures=$((failures + 1))
  fi
}

fresh_bin
stand_in dpkg-query "$all_installed"
run
expect 'succeeds when nothing is missing' test $? = 0
expect 'says nothing then' test ! -s "$TEST_TMPDIR/err"
expect 'does not call apt-get then' eval '! grep -q apt-get "$log"'

fresh_bin
stand_in dpkg-query "$without_mpfr"
stand_in sudo 'exec "$@"'
run --yes
expect 'installs what is missing' test $? = 0
expect 'installs only that' grep -q 'apt-get install .* libmpfr-dev$' "$log"
expect 'needs no update' eval '! grep -q "apt-get update" "$log"'
expect 'says what it installs' grep -q ': libmpfr-dev$' "$TEST_TMPDIR/err"
expect 'keeps stdout clean' test ! -s "$TEST_TMPDIR/out"

fresh_bin
stand_in dpkg-query "$without_mpfr"
stand_in sudo 'exec "$@"'
stand_in apt-cache 'exit 100'
run
expect 'installs a package that the lists lack' test $? = 0
expect 'updates the lists first' test \
  "$(grep -c '^apt-get' "$log") $(grep -m1 -o '^apt-get [a-z]*' "$log")" \
  = '2 apt-get update'

fresh_bin
stand_in dpkg-query "$without_mpfr"
stand_in sudo 'exec "$@"'
stand_in apt-get 'exit 100'
run
expect 'fails when apt-get does' test $? = 1

fresh_bin
stand_in dpkg-query "$without_mpfr"
if ((EUID != 0)); then
  run --yes
  expect 'refuses without root and sudo' test $? = 2
  expect 'prints the command' grep -q \
    '^  apt-get install .* libmpfr-dev$' "$TEST_TMPDIR/err"
fi

fresh_bin
run
expect 'refuses where there is no dpkg' test $? = 2
expect 'names all packages there' grep -q "${packages[*]}" "$TEST_TMPDIR/err"

run --force
expect 'refuses an unknown argument' test $? = 2

exit $((failures > 0))
