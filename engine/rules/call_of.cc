#include "engine/rules/call_of.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/call_attributes.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<Graph> CallOf(const RuleSet& rules, const Signature& signature) {
  const std::shared_ptr<Context>& context = rules.context();
  const absl::string_view name = context->op_name(signature.op);
  const Callable* callable = rules.impl().CallableOf(signature.op);
  if (callable == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no op `", name, "`"));
  }
  GraphBuilder builder(context);
  std::vector<Value> operands;
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    operands.push_back(builder.Input(
        absl::StrCat("x", i), context->types(signature.operands[i]).front()));
  }
  const Attributes& attributes = context->attributes(signature.attributes);
  CLEAVE_ASSIGN_OR_RETURN(
      const CallLayout layout,
      CallLayout::Of(*callable, attributes, operands.size()));
  // Its canonical attributes are given again by name.
  Attributes own;
  for (const auto& [key, value] : attributes.values()) {
    if (!IsCallAttribute(key)) own.Set(key, value);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::optional<Value>> results,
      rules.Call(builder, name, ArgumentsOf(*callable, layout, operands), own));
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].has_value()) {
      outputs.push_back({ResultName(*callable, i), *results[i]});
    }
  }
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
