// Call: the one way from tensors to ops. All functions of core_ops.h, and the
// operators of Tensor, go through it.
//
//   Tensor y = CallOne("softmax", {x}, {{"axis", 1}});
//   auto parts = Call("var_mean", {x});    // one tensor per result
//
// `op` is an op of the rules in use, or a primitive. Under a trace the call
// becomes a node. In eager code it becomes a node of the session's graph, which
// runs at once, at the end of the outermost AtomicScope, or when a value is
// asked for (session.h).

#ifndef CLEAVE_ENGINE_EAGER_CALL_H_
#define CLEAVE_ENGINE_EAGER_CALL_H_

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/eager/tensor.h"
#include "engine/ir/graph.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave::functional {

// A tensor or a number, nothing (an optional input that is not given), the list
// of a variadic input, or a `static` value.
struct CallArgument {
  using List = std::vector<std::optional<Tensor>>;

  CallArgument(Tensor x) : value(std::move(x)) {}                  // NOLINT
  CallArgument(cleave::Tensor x) : value(Tensor(std::move(x))) {}  // NOLINT
  CallArgument(std::nullopt_t) {}                                  // NOLINT
  CallArgument(std::optional<Tensor> x) {                          // NOLINT
    if (x.has_value()) value = *std::move(x);
  }
  CallArgument(List xs) : value(std::move(xs)) {}  // NOLINT
  CallArgument(const std::vector<Tensor>& xs)      // NOLINT
      : value(List(xs.begin(), xs.end())) {}
  CallArgument(StaticValue x) : value(std::move(x)) {}  // NOLINT

  std::variant<std::monostate, Tensor, List, StaticValue> value;
};

// One tensor per result, nullopt for one that is absent. Arguments stand by
// position. Dims of attributes are resolved (dim_scope.h). The first mistake
// among the arguments; NotFound for no such op; errors of the op's declaration;
// in eager code those of compiling and running. A number takes the dtype that
// another argument gives the same dtype variable of the declaration, or the
// fixed one; of primitives, that of the first tensor that sets it.
absl::StatusOr<std::vector<std::optional<Tensor>>> Call(
    absl::string_view op, const std::vector<CallArgument>& arguments,
    const Attributes& attributes = {});

// The one result, or a tensor that carries the mistake.
Tensor CallOne(absl::string_view op, const std::vector<CallArgument>& arguments,
               const Attributes& attributes = {});

// All results of an op that has always `count`; each carries the mistake.
std::vector<Tensor> CallMany(absl::string_view op, size_t count,
                             const std::vector<CallArgument>& arguments,
                             const Attributes& attributes = {});

// The graph's outputs on `inputs`, which have its types: dtypes are checked and
// dimension variables matched. Under a trace, and where ops accumulate, its
// nodes join those there; else each node runs on its own, as an op does.
absl::StatusOr<std::vector<Tensor>> CallGraph(
    const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_CALL_H_
