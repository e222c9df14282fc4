// SurviveAborts: code of LLVM that may end the process, without that end.
// Internal to this folder.
//
//   absl::Status status =
//       SurviveAborts(function_of_halide, [&] { module.compile(files); });
//
// LLVM states with assertions what it takes for granted, and some of its
// defects break them: LLVM 21 gives a register that only EVEX instructions can
// name to a VEX instruction, and then fails to encode it. An assertion calls
// abort, which is no answer to a host that asked for a kernel.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_SURVIVE_ABORTS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_SURVIVE_ABORTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace cleave {

// Calls `run`, and passes on what it throws. Aborted, with the assertion, where
// the shared object that has `function` called abort, exit or a failed assert
// meanwhile: `run` did not return then, and what its frames own is never freed.
// (LLVM's own CrashRecoveryContext leaves frames the same way.) By other
// objects the process ends as before, and so it does by other threads.
absl::Status SurviveAborts(const void* function, absl::FunctionRef<void()> run);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_SURVIVE_ABORTS_H_
