// Transposes of the primitives that tangents enter linearly: from the
// cotangents of the results to those of the operands. They are made of
// primitives that have derivatives themselves, so that reverse mode nests to
// any order. Internal to transforms.
//
// Complex values are pairs of reals: the transpose is the adjoint of the real
// inner product Re(conj(a) b), so that multiplying by k transposes to
// multiplying by conj(k), and the gradient of a real function is the direction
// of its steepest ascent.

#ifndef CLEAVE_TRANSFORMS_VJP_TRANSPOSE_PRIMITIVE_H_
#define CLEAVE_TRANSFORMS_VJP_TRANSPOSE_PRIMITIVE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// A primitive node that is linear in those operands together that are marked.
struct TransposeNode {
  GraphBuilder& builder;
  RuleTable& rules;
  Primitive primitive;
  const Attributes& attributes;
  std::vector<Value> operands;    // invalid where linear
  std::vector<TensorType> types;  // of the operands
  std::vector<bool> linear;       // per operand
  std::vector<TensorType> result_types;
  std::vector<Value> cotangents;  // per result; invalid: a symbolic zero

  Value x(int i) const { return operands[i]; }
  Value dy() const { return cotangents[0]; }
};

// Per operand; invalid where it is not linear, or for a symbolic zero.
using Cotangents = absl::StatusOr<std::vector<Value>>;

// Dispatches. At least one result has a cotangent. Internal for a primitive
// that is not linear in the operands that are marked.
Cotangents TransposePrimitive(const TransposeNode& node);

Cotangents TransposePad(const TransposeNode& node);
Cotangents TransposeSlice(const TransposeNode& node);
Cotangents TransposeConcatenate(const TransposeNode& node);
Cotangents TransposeWindows(const TransposeNode& node);
Cotangents TransposeLinearScan(const TransposeNode& node);
Cotangents TransposeDotGeneral(const TransposeNode& node);
Cotangents TransposeConv(const TransposeNode& node);
Cotangents TransposeGather(const TransposeNode& node);
Cotangents TransposeScatter(const TransposeNode& node);
// As partial evaluation leaves them: what is known is not carried, and decides
// the branch.
Cotangents TransposeScan(const TransposeNode& node);
Cotangents TransposeCond(const TransposeNode& node);

// The complex conjugate; a real value as it is.
Value Conjugate(GraphBuilder& b, Value x);
// The sum over all axes of x where `mask` holds.
Value SumWhere(GraphBuilder& b, Value mask, Value x);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_TRANSPOSE_PRIMITIVE_H_
