// IntegerConstant: the integer that a value is everywhere. Which code a kernel
// has may depend on it, as that of a division does. Internal to engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_INTEGER_CONSTANT_H_
#define CLEAVE_ENGINE_CODEGEN_INTEGER_CONSTANT_H_

#include <cstdint>
#include <optional>

#include "engine/ir/graph.h"

namespace cleave {

// The integer that all elements of v are, a constant or one broadcast; nullopt
// for another value.
std::optional<int64_t> IntegerConstant(const Graph& graph, Value v);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_INTEGER_CONSTANT_H_
