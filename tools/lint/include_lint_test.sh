#!/bin/bash
# The include lint refuses what it should, and names the place.
set -uo pipefail

lint=$PWD/tools/lint/include_lint.sh
failures=0
cd "$TEST_TMPDIR" || exit 1

# check WANT FILE INCLUDE: lints FILE, which includes INCLUDE in its line 2.
check() {
  mkdir -p "$(dirname "$2")"
  printf '// A file.\n#include "%s"\n' "$3" >"$2"
  local got=ok
  "$lint" "$2" 2>err || got=refused
  if [[ $got != "$1" ]]; then
    echo "FAILED: $2 including $3: $got, not $1" >&2
    failures=$((failures + 1))
  elif [[ $got == refused ]] && ! grep -q "^$2:2: " err; then
    echo "FAILED: $2 including $3: the message names no place" >&2
    failures=$((failures + 1))
  fi
}

check ok ops/tensor.cc ops/tensor.h
check ok ops/tensor.cc absl/status/status.h
check ok ops/tensor_test.cc testing/status_matchers.h
check ok ops/tensor_testing.h testing/status_matchers.h
check refused ops/tensor.cc testing/sampler.h
check refused ops/tensor.cc engine/ir/graph.h
check ok engine/rewrite/expand.cc engine/lang/ast.h
check refused engine/lang/parser.cc engine/ir/graph.h
check refused engine/ir/graph.cc engine/rewrite/expand.h
check ok transforms/vmap/vmap.cc engine/rewrite/expand.h
check refused engine/rewrite/expand.cc transforms/vmap/vmap.h
check refused transforms/vmap/vmap.cc engine/codegen/kernel.h
check ok transforms/vjp/vjp.cc transforms/jvp/jvp.h
check refused transforms/jvp/jvp.cc transforms/vjp/vjp.h
check refused transforms/jvp/jvp.cc transforms/vmap/batch.h
check refused transforms/table/names.cc transforms/vmap/batch.h
check ok transforms/vmap/vmap_test.cc transforms/testing/test_rules.h
check refused transforms/vjp/vjp.cc transforms/testing/test_rules.h
check refused transforms/report/coverage.cc engine/codegen/kernel.h
check ok transforms/partition/partition.cc engine/codegen/fusion.h
check ok engine/eager/session.cc engine/runtime/kernel.h
check ok transforms/partition/partition.cc transforms/vjp/vjp.h
check ok transforms/functions/functions.cc transforms/partition/partition.h
check refused transforms/vmap/vmap.cc engine/eager/tensor.h
check refused engine/runtime/kernel.cc engine/eager/tensor.h
check refused engine/eager/session.cc transforms/vmap/vmap.h
check refused engine/runtime/kernel.cc transforms/vmap/vmap.h
check ok engine/elaborate/signature.cc engine/bind/library.h
check ok engine/rules/load_rules.cc engine/files/cache_folder.h
check refused engine/files/file.cc engine/lang/source.h
check refused engine/index/affine.cc engine/elaborate/rule_value.h
check ok engine/codegen/halide/target.cc Halide.h
check refused engine/codegen/compile_group.cc Halide.h
check refused testing/compare.cc Halide.h
check refused engine/runtime/kernel.cc Halide.h
check ok engine/runtime/kernel.cc HalideRuntime.h
check refused testing/compare.cc HalideRuntime.h
check ok tools/cleave.cc testing/equivalence.h

# skips WANT FILE: lints FILE, which skips a test in its line 2.
skips() {
  mkdir -p "$(dirname "$2")"
  printf '// A file.\n  GTEST_SKIP() << "so";\n' >"$2"
  local got=ok
  "$lint" "$2" 2>err || got=refused
  if [[ $got != "$1" ]]; then
    echo "FAILED: $2 skipping a test: $got, not $1" >&2
    failures=$((failures + 1))
  elif [[ $got == refused ]] && ! grep -q "^$2:2: " err; then
    echo "FAILED: $2 skipping a test: the message names no place" >&2
    failures=$((failures + 1))
  fi
}

skips refused engine/runtime/device_test.cc
skips refused testing/compare_test.cc
skips ok testing/skip.h
exit $((failures > 0))
