// L1: types and shapes of calls of each dtype, at many ranks and sizes.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_TYPES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_TYPES_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// The results of a call have the types that the op declares, in the spec and in
// the body; running the body gives tensors of them. Calls that the op rejects
// are counted.
Verdict CheckTypes(const OpContext& context, const PreparedCalls& concrete);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_TYPES_H_
