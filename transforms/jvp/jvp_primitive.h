// Tangents of the primitives whose rules are C++: linear in the tangents, and
// made of primitives that have rules themselves, so that jvp nests to any
// order. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_JVP_JVP_PRIMITIVE_H_
#define CLEAVE_TRANSFORMS_JVP_JVP_PRIMITIVE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// A primitive node to differentiate.
struct JvpNode {
  GraphBuilder& builder;
  RuleTable& rules;
  Primitive primitive;
  const Attributes& attributes;
  std::vector<Value> operands;
  std::vector<Value> results;  // none for scan, cond, while
  std::vector<TensorType> result_types;
  std::vector<Value> tangents;  // per operand; invalid: a symbolic zero

  Value x(int i) const { return operands[i]; }
  Value dx(int i) const { return tangents[i]; }
  Value y() const { return results[0]; }
  bool active(int i) const { return tangents[i].valid(); }
  // The tangent of operand i, zeros where it is a symbolic zero.
  Value DenseTangent(int i) const;
  TensorType type(int i) const { return builder.type(operands[i]); }
};

struct JvpNodeResult {
  std::vector<Value> tangents;  // per result; invalid: a symbolic zero
  std::vector<Value> results;   // of scan, cond, while: the primal ones
};

// Dispatches; Linear primitives are applied to the tangents. At least one
// operand is active.
absl::StatusOr<JvpNodeResult> JvpPrimitive(const JvpNode& node);

using Tangent = absl::StatusOr<Value>;

Tangent JvpMaxMin(const JvpNode& node);
Tangent JvpReduceProd(const JvpNode& node);
Tangent JvpReduceMaxMin(const JvpNode& node);
Tangent JvpContraction(const JvpNode& node);
Tangent JvpLinearScan(const JvpNode& node);
Tangent JvpCumulativeMaxMin(const JvpNode& node);
Tangent JvpGather(const JvpNode& node);
Tangent JvpScatter(const JvpNode& node);
Tangent JvpSort(const JvpNode& node);
absl::StatusOr<JvpNodeResult> JvpScan(const JvpNode& node);
absl::StatusOr<JvpNodeResult> JvpCond(const JvpNode& node);
absl::StatusOr<JvpNodeResult> JvpWhile(const JvpNode& node);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_JVP_JVP_PRIMITIVE_H_
