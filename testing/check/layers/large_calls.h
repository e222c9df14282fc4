// Calls with one extent that was chosen, most of them large: claims that grow
// with an extent, indices that a narrow type holds, and angles or counts that a
// narrow float rounds show there alone.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_LARGE_CALLS_H_
#define CLEAVE_TESTING_CHECK_LAYERS_LARGE_CALLS_H_

#include <cstdint>
#include <vector>

#include "testing/check/layers/op_context.h"

namespace cleave {

// From this number of elements on an operand is large: it is compared with few
// patterns, and conditions are taken at the worst elements only.
inline constexpr int64_t kLargeElements = 1024;

// For each axis of the signature all lengths from 1 to 5, and one of each row
// of those beside powers of two, 6 to 33, 63 to 257, and 511 to 4,097, as far
// as that many elements are affordable. One of 63 to 257 once more, beside
// other sizes and integer attributes that are as large: square matrices, a
// channel in each group. Then the longest, which overflows a count in f16, for
// one axis.
inline constexpr int64_t kAllExtents = 5;
inline constexpr int64_t kLongestExtent = 65537;

// Beside these, where an attribute is a list of integers (a kernel, say), calls
// in which all sizes are from 6 to 13. And where a body compares with a larger
// integer than kAllExtents, 65 rows for `n >= 64`: of some at that size, those
// that take a branch that no other call takes, at more work than the others.

// Sets `prepared.large`, of an op that is not elementwise, to calls beside
// those that are there, small ones first, and `prepared.refused`. The same seed
// draws the same calls; none depends on time.
void PrepareLargeCalls(const OpContext& context, PreparedCalls& prepared);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_LARGE_CALLS_H_
