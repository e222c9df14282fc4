#!/bin/bash
# include_lint.sh FILE...: fails if a file includes a header of a layer above
# its own, or Halide.h outside engine/codegen/halide; engine/codegen,
# engine/runtime and engine/c_library also have Halide's runtime headers. Tests
# may include testing/ and transforms/ anywhere. Fails, too, where a test is skipped for a
# reason that is not in the list of them.
#
# Visibility refuses the same dependencies between targets; this also catches
# an include whose target is not in `deps`.
set -euo pipefail

# The layers, from the bottom up. A layer may include those in the lines above
# its own, itself, and nothing else: engine/codegen and transforms do not know of
# each other. The layer "transforms" is the files of that folder alone; each of
# its rooms is a layer.
layers=(
  "ops"
  "engine/files engine/lang engine/ir"
  "engine/index engine/bind"
  "engine/elaborate"
  "engine/rules"
  "engine/rule_text engine/rewrite"
  "transforms/table engine/codegen"
  "transforms/vmap transforms/jvp engine/pipeline"
  "transforms/vjp"
  "transforms"
  "transforms/testing transforms/report transforms/shipped_rules"
  "engine/runtime"
  "engine/eager engine/c_library"
  "transforms/partition"
  "transforms/aot"
  "transforms/functions"
  "testing"
  "engine/embed"
)
# The layers that a layer may not include though it stands higher.
refused() {
  case $1,$2 in
    engine/runtime,transforms* | engine/c_library,transforms*) true ;;
    engine/eager,transforms* | engine/index,engine/lang) true ;;
    transforms/aot,* | transforms/functions,* | transforms/partition,*) false ;;
    transforms*,engine/codegen | transforms*,engine/pipeline) true ;;
    *) false ;;
  esac
}

# allowed LAYER: the layers that it may include; "any" for tools/.
allowed() {
  local below=() line
  for line in "${layers[@]}"; do
    [[ " $line " == *" $1 "* ]] && echo "${below[@]}" && return
    below+=($line)
  done
  echo any
}

# engine/lang/parser.h -> engine/lang; ops/check.h -> ops.
layer_of() {
  case $1 in
    engine/*/* | transforms/*/*) cut -d/ -f1,2 <<<"$1" ;;
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
        [[ $target == testing || $target == transforms* ]] && continue
        ;;
    esac
    case $file,$header in
      engine/codegen/halide/*,* | tools/precompiled/halide.h,Halide.h) ;;
      # Headers that kernels are called with; nothing of the compiler.
      engine/runtime/*,HalideRuntime*.h | engine/runtime/*,HalideBuffer.h) ;;
      engine/c_library/*,HalideRuntime*.h) ;;
      engine/codegen/*,HalideRuntime*.h) ;;
      *,Halide*.h)
        echo "$file:$line: $header may be included in" \
          "engine/codegen/halide only" >&2
        failed=1
        ;;
    esac
    case $target in
      ops | engine | engine/* | transforms | transforms/* | testing | tools) ;;
      *) continue ;;
    esac
    [[ $target == "$layer" || $permitted == any ]] && continue
    if [[ " $permitted " != *" $target "* ]] || refused "$layer" "$target"; then
      echo "$file:$line: $layer may not include $header" >&2
      failed=1
    fi
  done < <(grep -n '^#include "' "$file" |
    sed 's/^\([0-9]*\):#include "\([^"]*\)".*/\1:\2/')
done
exit $failed
