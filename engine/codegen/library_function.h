// The functions of the C library that kernels call, one element at a time.
// Internal to engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_LIBRARY_FUNCTION_H_
#define CLEAVE_ENGINE_CODEGEN_LIBRARY_FUNCTION_H_

#include "absl/strings/string_view.h"
#include "ops/primitive.h"

namespace cleave {

// The function that computes this primitive on doubles ("exp"; the one on
// floats has an f behind its name); null if the library has none.
const char* LibraryFunction(Primitive primitive);

// Whether `name` is one of those, or "ldexp", for doubles or for floats.
bool IsLibraryFunction(absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_LIBRARY_FUNCTION_H_
