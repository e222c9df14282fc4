// Shrink: a case that fails, made smaller while it fails in the same way.
//
// In turns, until nothing helps: fewer points, statements, results and
// conditions; expressions replaced by their parts or by 0 and 1; smaller
// extents and plainer values. A case that does not load is no smaller case, so
// that nothing here needs to know of types.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_SHRINK_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_SHRINK_H_

#include "absl/functional/function_ref.h"
#include "testing/fuzz/differential/fuzz_case.h"

namespace cleave::fuzz {

// `fails` is asked at most `trials` times.
FuzzCase Shrink(FuzzCase one, int trials,
                absl::FunctionRef<bool(const FuzzCase&)> fails);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_SHRINK_H_
