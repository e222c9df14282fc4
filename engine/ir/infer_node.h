// Result types of a primitive node of a graph: InferType, and what it leaves to
// the graph: projections of tuples, and control flow typed by its regions.
//
// A scan's body takes (consts.., carries.., slices of xs along axis 0..) and
// gives (carries.., ys..): carries keep their types, ys gain the axis. Both
// regions of a cond take the operands and give the same types. Both regions of
// a while take (consts.., carries..); one gives bool[], the other the carries.

#ifndef CLEAVE_ENGINE_IR_INFER_NODE_H_
#define CLEAVE_ENGINE_IR_INFER_NODE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/context.h"
#include "ops/infer_type.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

// `operands` are the types of the operand nodes in `context`: only `result`
// takes a tuple. InvalidArgument where operands, attributes or regions do not
// fit, with a message that names the primitive and the operand. Inputs are not
// inferred: InvalidArgument.
absl::StatusOr<InferredType> InferNode(const Context& context,
                                       Primitive primitive,
                                       const Attributes& attributes,
                                       absl::Span<const TypeId> operands);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_INFER_NODE_H_
