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
  const StaticValue* layout = attributes.Find(kLayout);
  std::vector<Argument> arguments;
  size_t next = 0;
  size_t tensor_input = 0;
  // The next operand: a signature made for another op may have too few.
  bool fits = true;
  const auto take = [&]() -> std::optional<Value> {
    fits = fits && next < operands.size();
    return fits ? std::optional<Value>(operands[next++]) : std::nullopt;
  };
  for (const InputDecl& input : callable->inputs) {
    if (input.is_static) continue;
    const StaticValue* entry = nullptr;
    if (layout != nullptr) {
      fits = fits && tensor_input < layout->AsList().size();
      if (!fits) break;
      entry = &layout->AsList()[tensor_input];
    }
    ++tensor_input;
    if (entry != nullptr && entry->kind() == StaticValue::Kind::kList) {
      std::vector<std::optional<Value>> list;
      for (const StaticValue& there : entry->AsList()) {
        list.push_back(there.AsBool() ? take() : std::nullopt);
      }
      arguments.push_back({input.name, std::move(list)});
    } else if (entry == nullptr || entry->AsBool()) {
      const std::optional<Value> operand = take();
      if (operand) arguments.push_back({input.name, *operand});
    }
  }
  if (!fits || next < operands.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", name, "` does not take ", operands.size(), " tensors so"));
  }
  // Its canonical attributes are given again by name.
  Attributes own;
  for (const auto& [key, value] : attributes.values()) {
    if (key != kLayout) own.Set(key, value);
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::optional<Value>> results,
                          rules.Call(builder, name, arguments, own));
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].has_value()) {
      outputs.push_back({callable->results[i].name, *results[i]});
    }
  }
  return std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
