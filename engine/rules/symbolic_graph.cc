#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/rules/rule_set.h"
#include "engine/rules/rule_set_impl.h"
#include "engine/rules/symbolic_call.h"

namespace cleave {

absl::StatusOr<std::vector<Graph>> RuleSet::SymbolicCalls(
    absl::string_view op) const {
  const Callable* callable = impl_->library.FindCallable(op);
  if (callable == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no op `", op, "`"));
  }
  const class SymbolicCalls calls(*callable);
  std::vector<Graph> graphs;
  for (int i = 0; i < calls.count(); ++i) {
    GraphBuilder builder(impl_->context);
    const absl::StatusOr<SymbolicCall> call =
        calls.Make(i, impl_->library, builder);
    if (!call.ok()) continue;
    const auto results = Call(builder, op, call->arguments, call->attributes);
    if (!results.ok()) continue;
    std::vector<NamedValue> outputs;
    for (const std::optional<Value>& result : *results) {
      if (!result.has_value()) continue;
      outputs.push_back({absl::StrCat("y", outputs.size()), *result});
    }
    absl::StatusOr<Graph> graph = std::move(builder).Build(std::move(outputs));
    if (graph.ok()) graphs.push_back(*std::move(graph));
  }
  return graphs;
}

}  // namespace cleave
