// CheckExamples and CheckLawsOf: the `example` items of an op, and a spec that
// is given as laws.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_EXAMPLES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_EXAMPLES_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// The `example` items of the op: exactly, or for `~` within the accuracy that
// the op declares (8 ulp, if it declares none).
Verdict CheckExamples(const OpContext& context);

// A spec given as laws, at the calls at concrete extents; at the large ones
// those laws that do not cost too much there.
Verdict CheckLawsOf(const OpContext& context, const PreparedCalls& prepared);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_EXAMPLES_H_
