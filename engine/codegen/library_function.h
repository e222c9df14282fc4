// The functions of the C library that kernels call, one element at a time.
// Internal to engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_LIBRARY_FUNCTION_H_
#define CLEAVE_ENGINE_CODEGEN_LIBRARY_FUNCTION_H_

#include "absl/strings/string_view.h"
#include "ops/primitive.h"

namespace cleave {

// The name for doubles ("exp"; that for floats has an f behind it) of what
// computes this primitive; null where the library has nothing.
const char* LibraryFunction(Primitive primitive);

// Whether `name` is one of those, or "ldexp", for doubles or for floats.
bool IsLibraryFunction(absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_LIBRARY_FUNCTION_H_
