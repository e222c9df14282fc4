// UnknownOutputs: which results of a loop or branch depend on an unknown
// operand, as partial evaluation cuts it. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VJP_UNKNOWN_OUTPUTS_H_
#define CLEAVE_TRANSFORMS_VJP_UNKNOWN_OUTPUTS_H_

#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/loop_operands.h"

namespace cleave {

// Which outputs of `graph` depend on an unknown input.
std::vector<bool> UnknownOutputs(const Graph& graph,
                                 const std::vector<bool>& unknown);

// The same of a loop's body. A carry that a step makes unknown is unknown in
// the next one, too: `unknown`, of its inputs, comes to say which carries are.
std::vector<bool> UnknownOfLoop(const Graph& body, const LoopOperands& loop,
                                std::vector<bool>& unknown);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_UNKNOWN_OUTPUTS_H_
