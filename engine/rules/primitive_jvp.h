// The derivative of a pointwise primitive, from its `jvp` item.

#ifndef CLEAVE_ENGINE_RULES_PRIMITIVE_JVP_H_
#define CLEAVE_ENGINE_RULES_PRIMITIVE_JVP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/ir/graph.h"
#include "engine/rules/lower_term.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Inputs are the operands, the result `y`, then the tangents of the active
// operands; the output is the tangent of y. Tangents of inactive operands are
// symbolic zeros. Unimplemented("impossible: why") where a coefficient that is
// not known is reached.
absl::StatusOr<Graph> CompilePrimitiveJvp(const Library& library,
                                          const Item& item,
                                          std::shared_ptr<Context> context,
                                          const Signature& signature,
                                          const std::vector<bool>& active,
                                          const Callees& callees);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_PRIMITIVE_JVP_H_
