// Numerics: pointwise primitives become arithmetic, for inside a kernel.
//
//   Graph graph = ...;  // y = exp(x), f32[n]
//   Graph arithmetic = *ApplyNumerics(graph, *rules);  // fma, mul, select, ..
//
// The rules' `numeric` items say how. All that they use is rounded as IEEE 754
// says, so the result has the same bits in the interpreter and in a kernel.

#ifndef CLEAVE_ENGINE_CODEGEN_NUMERICS_H_
#define CLEAVE_ENGINE_CODEGEN_NUMERICS_H_

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// `graph`, of primitives, with each pointwise one that has a numeric of its
// operands' dtype replaced by its body. One on f16 or bf16 that has none there
// but one of f32 becomes conversions to f32, the body, and the conversion back.
// `polygamma` of another order than 0 and 1 stays. Regions are changed, too;
// types, names and guards stay. InvalidArgument for a
// composite node (expand first) and for a graph of another context than that of
// the rules; errors of RuleSet::Numeric.
absl::StatusOr<Graph> ApplyNumerics(const Graph& graph, const RuleSet& rules);

// The numeric that ApplyNumerics uses for `primitive` on operands of `dtype`;
// nullptr where it leaves the primitive alone.
absl::StatusOr<const NumericBody*> FindNumeric(const RuleSet& rules,
                                               Primitive primitive,
                                               DType dtype);

// The code by which a kernel computes a pointwise primitive on floats that has
// no numeric.
enum class FloatSource {
  kArithmetic,  // operations of IEEE 754, or bits
  kLibrary,     // a function of the C library
  kReference,   // the reference kernel
};
FloatSource FloatSourceOf(Primitive primitive);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_NUMERICS_H_
