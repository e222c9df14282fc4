// LoadCodeGenerator: Halide and what drives it, loaded when it is first needed.
//
//   CleaveGenerateCode* generate = *LoadCodeGenerator();
//
// Halide has LLVM in it: 165 MB, and milliseconds of constructors. A process
// that interprets, or runs kernels that a cache has, needs none of it. So all
// that includes Halide.h is a shared object of its own, libcleave_codegen.so
// (//engine/codegen/halide), which is opened with the first kernel to compile.
//
// The process looks for it, in this order:
//   $CLEAVE_CODEGEN          its path; nowhere else where this is set
//   beside the program or the shared library that Cleave is linked into, and in
//   `../lib` from there      an installed prefix, with libHalide.so beside it
//   the runfiles of Bazel    $RUNFILES_DIR, $TEST_SRCDIR, PROGRAM.runfiles
//   the system's folders     as dlopen finds a name without a path
//
// The environment does not count in a program that runs with the rights of
// another user.

#ifndef CLEAVE_ENGINE_CODEGEN_CODE_GENERATOR_H_
#define CLEAVE_ENGINE_CODEGEN_CODE_GENERATOR_H_

#include "absl/status/statusor.h"
#include "engine/codegen/code_generator_interface.h"

namespace cleave {

// The function of the code generator, which any number of threads may call. It
// stays loaded for as long as the process lives. Unavailable where there is
// none, with the places that were looked at, or where the system cannot load
// it, with the reason; FailedPrecondition where it is of another build. A
// refusal is not remembered: the next call looks again.
absl::StatusOr<CleaveGenerateCode*> LoadCodeGenerator();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_CODE_GENERATOR_H_
