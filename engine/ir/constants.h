// Values that are one number everywhere, and comparisons of them.

#ifndef CLEAVE_ENGINE_IR_CONSTANTS_H_
#define CLEAVE_ENGINE_IR_CONSTANTS_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/primitive.h"

namespace cleave {

// The integer that all elements of v are, a constant or one broadcast; nullopt
// for another value. A float may be an integer.
std::optional<int64_t> IntegerConstant(const Graph& graph, Value v);

// The same of a bool.
std::optional<bool> BoolConstant(const Graph& graph, Value v);

// Whether a comparison of integers holds everywhere, where both are constants;
// nullopt for another primitive or other operands.
//
//   lt(2, 3)  ->  true
std::optional<bool> ComparedConstants(const Graph& graph, Primitive primitive,
                                      absl::Span<const Value> operands);

// Such a comparison as a constant of its operands' shape.
std::optional<Value> FoldComparison(GraphBuilder& builder, Primitive primitive,
                                    absl::Span<const Value> operands);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_CONSTANTS_H_
