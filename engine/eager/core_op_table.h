// All functions of core_ops.h by name, for tests and tools: the same build step
// makes both.

#ifndef CLEAVE_ENGINE_EAGER_CORE_OP_TABLE_H_
#define CLEAVE_ENGINE_EAGER_CORE_OP_TABLE_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/eager/call.h"
#include "engine/eager/tensor.h"
#include "ops/static_value.h"

namespace cleave::functional {

struct GeneratedOp {
  absl::string_view name;      // "softmax"
  absl::string_view function;  // "Softmax"
  bool is_primitive = false;
  // Calls the function. One argument for each input, in order; attributes that
  // are not among `attributes` take the function's defaults. CHECKs that the
  // arguments are of the function's kinds, and that none that it requires is
  // missing.
  std::vector<std::optional<Tensor>> (*call)(
      const std::vector<CallArgument>& arguments, const Attributes& attributes);
};
const std::vector<GeneratedOp>& GeneratedOps();

// Ops that have no function, and why.
struct OpWithoutFunction {
  absl::string_view name;
  absl::string_view why;
};
const std::vector<OpWithoutFunction>& OpsWithoutFunctions();

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_CORE_OP_TABLE_H_
