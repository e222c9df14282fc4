#!/bin/bash
# include_lint.sh FILE...: fails if a file includes a header of a layer above
# its own, or Halide.h outside engine/codegen; engine/runtime and engine/aot also
# have Halide's runtime headers. Fails, too, where a test is skipped for a reason
# that is not in the list of them.
#
# Visibility refuses the same dependencies between targets; this also catches
# an include whose target is not in `deps`.
set -euo pipefail

# What each layer may include, itself aside. Tests may use testing/ anywhere.
allowed() {
  case $1 in
    ops) echo "" ;;
    engine/lang) echo "ops" ;;
    engine/ir) echo "ops" ;;
    engine/rewrite) echo "ops engine/lang engine/ir" ;;
    transforms | engine/codegen)
      echo "ops engine/lang engine/ir engine/rewrite" ;;
    engine/runtime)
      echo "ops engine/lang engine/ir engine/rewrite transforms engine/codegen"
      ;;
    transforms/aot | transforms/functional)
      echo "ops engine/lang engine/ir engine/rewrite transforms" \
        "engine/codegen engine/runtime transforms/aot transforms/functional" ;;
    testing | engine/aot | engine/embed | engine)
      echo "ops engine/lang engine/ir engine/rewrite transforms" \
        "engine/codegen engine/runtime transforms/aot transforms/functional" ;;
    *) echo "any" ;;
  esac
}

# engine/lang/parser.h -> engine/lang; ops/check.h -> ops. The two folders of
# transforms/ that run kernels are layers above the runtime.
layer_of() {
  case $1 in
    engine/*/* | transforms/aot/* | transforms/functional/*)
      cut -d/ -f1,2 <<<"$1" ;;
    *) cut -d/ -f1 <<<"$1" ;;
  esac
}

failed=0
for file in "$@"; do
  if [[ $file != testing/skip.h ]] &&
    places=$(grep -n 'GTEST_SKIP' "$file"); then
    echo "$file:${places%%:*}: tests are skipped by CLEAVE_SKIP, for a reason" \
      "of testing/skip_reason.def" >&2
    failed=1
  fi
  layer=$(layer_of "$file")
  permitted=$(allowed "$layer")
  while IFS=: read -r line header; do
    target=$(layer_of "$header")
    case $file in
      *_test.cc | *_testing.cc | *_testing.h | *_benchmark.cc)
        [[ $target == testing ]] && continue
        ;;
    esac
    case $layer,$header in
      engine/codegen,*) ;;
      # What kernels are called with; nothing of the compiler.
      engine/runtime,HalideRuntime*.h | engine/runtime,HalideBuffer.h) ;;
      engine/aot,HalideRuntime*.h) ;;
      *,Halide*.h)
        echo "$file:$line: $header may be included in engine/codegen only" >&2
        failed=1
        ;;
    esac
    case $target in
      ops | engine | engine/* | transforms | transforms/* | testing | tools) ;;
      *) continue ;;
    esac
    if [[ $target != "$layer" && $permitted != any &&
      " $permitted " != *" $target "* ]]; then
      echo "$file:$line: $layer may not include $header" >&2
      failed=1
    fi
  done < <(grep -n '^#include "' "$file" |
    sed 's/^\([0-9]*\):#include "\([^"]*\)".*/\1:\2/')
done
exit $failed
