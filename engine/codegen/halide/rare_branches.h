// Unless: a choice whose one side takes long, as the argument reduction of a
// sine does where an argument is large, by a branch over it where no lane of a
// vector wants it. Internal to this folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_RARE_BRANCHES_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_RARE_BRANCHES_H_

#include "Halide.h"

namespace cleave {

// `usual` where `rare` is false, else `other`: computed where one lane at
// least wants it.
Halide::Expr Unless(const Halide::Expr& rare, const Halide::Expr& other,
                    const Halide::Expr& usual);

// Makes the choices branches when the pipeline is lowered; `branch` false, as
// on devices: selections.
void LowerRareBranches(Halide::Pipeline& pipeline, bool branch);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_RARE_BRANCHES_H_
