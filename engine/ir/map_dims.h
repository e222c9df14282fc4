// MapDims: a function applied to each dim among the attributes of a node.
// Internal to engine/ir and engine/codegen.

#ifndef CLEAVE_ENGINE_IR_MAP_DIMS_H_
#define CLEAVE_ENGINE_IR_MAP_DIMS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "ops/dim.h"
#include "ops/static_value.h"

namespace cleave::internal_ir {

using DimFunction = std::function<absl::StatusOr<Dim>(const Dim&)>;
using RegionFunction = std::function<absl::StatusOr<Region>(const Region&)>;

// `attributes` with `dim` applied to each dim that is no number, and `region`,
// if there is one, to each region. The first error of either.
absl::StatusOr<Attributes> MapDims(const Attributes& attributes,
                                   const DimFunction& dim,
                                   const RegionFunction& region = nullptr);

}  // namespace cleave::internal_ir

#endif  // CLEAVE_ENGINE_IR_MAP_DIMS_H_
