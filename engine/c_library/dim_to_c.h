// Dims as C expressions, for code that computes the extents of a call.
//
//   DimToC(*Dim::Parse("2*n + 1"), {{"n", "dims[0]"}})
//   // cleave_narrow(cleave_plus(cleave_times(2, dims[0], bad), 1, bad), bad)

#ifndef CLEAVE_ENGINE_C_LIBRARY_DIM_TO_C_H_
#define CLEAVE_ENGINE_C_LIBRARY_DIM_TO_C_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "ops/dim.h"

namespace cleave {

// The functions that expressions of DimToC call, in C99 with what GCC and Clang
// add to it; they need <stdint.h>.
extern const char kDimFunctions[];

// An int64_t expression with the value of Dim::Evaluate. Where that fails, for
// a division by zero or beyond 64 bits, it sets *bad, an int, to 1.
// `variables` has an int64_t expression for each variable (CHECK).
std::string DimToC(const Dim& dim,
                   const std::map<std::string, std::string>& variables);

// "==", "<=", ...
absl::string_view ComparisonInC(CompareOp op);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_DIM_TO_C_H_
