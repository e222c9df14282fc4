// MatchDims: values for the variables of declared shapes, from the extents of
// tensors. An extent may be a symbol of a trace; engine/ir/bind.h has numbers
// alone. Internal to engine/eager.

#ifndef CLEAVE_ENGINE_EAGER_MATCH_DIMS_H_
#define CLEAVE_ENGINE_EAGER_MATCH_DIMS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/dim.h"

namespace cleave::functional {

// `declared` must be `actual`; `what` names the place for messages.
struct DimMatch {
  Dim declared;
  Dim actual;
  std::string what;
};

// Adds to `values` the variables that the equations determine, and checks every
// equation; under a trace one that cannot be decided becomes a guard.
// InvalidArgument where one does not hold, or a variable cannot be solved for.
absl::Status MatchDims(std::vector<DimMatch> equations,
                       std::map<std::string, Dim>* values);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_MATCH_DIMS_H_
