// The headers that the files of engine/codegen/halide start with: common.h and
// Halide.

#ifndef CLEAVE_TOOLS_PRECOMPILED_HALIDE_H_
#define CLEAVE_TOOLS_PRECOMPILED_HALIDE_H_

#include "Halide.h"
#include "tools/precompiled/common.h"

#endif  // CLEAVE_TOOLS_PRECOMPILED_HALIDE_H_
