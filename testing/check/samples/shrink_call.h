// Shrinking of calls: fewer axes and smaller extents, before the values.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_SHRINK_CALL_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_SHRINK_CALL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/lang/ast.h"
#include "ops/tensor.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

struct CallInputs {
  SampledCall call;  // its extents are those of the inputs
  std::vector<Tensor> inputs;
};

// The call with other extents: each that `extents` names is replaced wherever
// it stands, in attributes that name extents, too.
SampledCall WithExtents(const Item& item, SampledCall call,
                        const std::map<int64_t, int64_t>& extents);

// Makes a call of `item` smaller as long as `fails` holds: extents, of all
// operands that have the same one, with the attributes that name them; axes of
// extent 1, with the attributes that count axes. At most `trials` calls of
// `fails`, which refuses what the op does not accept.
CallInputs ShrinkCall(const Item& item, CallInputs failing,
                      const std::function<bool(const CallInputs&)>& fails,
                      int trials = 100);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_SHRINK_CALL_H_
