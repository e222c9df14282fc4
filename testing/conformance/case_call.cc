#include "testing/conformance/case_call.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/ast.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

const InputDecl* FindInput(const Item& item, const std::string& name) {
  for (const InputDecl& input : item.inputs) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

// A tensor of integers as the list that a static input takes.
absl::StatusOr<StaticValue> ToStatic(const Tensor& tensor,
                                     const std::string& name) {
  StaticValue::List list;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsInt(tensor.dtype()) || IsBool(tensor.dtype())) {
      list.emplace_back(tensor.GetInt(i));
    } else if (IsFloat(tensor.dtype())) {
      list.emplace_back(Exact::FromDouble(tensor.GetDouble(i)));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", name, "`: a static input of dtype ", DTypeName(tensor.dtype())));
    }
  }
  return StaticValue(std::move(list));
}

StaticValue ToStatic(const CaseValue& value) {
  struct Visitor {
    StaticValue operator()(const CaseValue::None&) { return StaticValue(); }
    StaticValue operator()(const CaseValue::TensorRef&) {
      return StaticValue();
    }
    StaticValue operator()(int64_t v) { return StaticValue(v); }
    StaticValue operator()(double v) {
      return StaticValue(Exact::FromDouble(v));
    }
    StaticValue operator()(bool v) { return StaticValue(v); }
    StaticValue operator()(const std::string& v) { return StaticValue(v); }
    StaticValue operator()(DType v) { return StaticValue(v); }
    StaticValue operator()(const CaseValue::List& v) {
      StaticValue::List list;
      for (const CaseValue& element : v) list.push_back(ToStatic(element));
      return StaticValue(std::move(list));
    }
  };
  return std::visit(Visitor(), value.value);
}

bool HasTensor(const CaseValue::List& list) {
  for (const CaseValue& element : list) {
    if (element.tensor() != nullptr) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<CaseCall> MakeCaseCall(const RuleSet& rules,
                                      const std::string& op,
                                      const CaseArguments& arguments) {
  const Item* item = rules.Find(op);
  if (item == nullptr) {
    return absl::NotFoundError(absl::StrCat("no rule for `", op, "`"));
  }
  CaseCall call;
  GraphBuilder builder(rules.context());
  const auto add_input = [&](const std::string& name, int element,
                             const std::string& input_name,
                             const Tensor& tensor) {
    call.arguments.push_back(name);
    call.elements.push_back(element);
    call.tensors.push_back(tensor);
    return builder.Input(input_name, tensor.type());
  };
  std::vector<Argument> call_arguments;
  Attributes attributes;
  for (const auto& [name, value] : arguments) {
    if (std::holds_alternative<CaseValue::None>(value.value)) continue;
    if (const auto* ref = value.tensor()) {
      const InputDecl* input = FindInput(*item, name);
      if (input != nullptr && input->is_static) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue list, ToStatic(ref->tensor, name));
        call_arguments.push_back({name, std::move(list)});
      } else {
        call_arguments.push_back({name, add_input(name, 0, name, ref->tensor)});
      }
      continue;
    }
    const CaseValue::List* list = value.list();
    if (list != nullptr && HasTensor(*list)) {
      std::vector<std::optional<Value>> elements;
      for (size_t i = 0; i < list->size(); ++i) {
        const auto* ref = (*list)[i].tensor();
        elements.push_back(ref == nullptr
                               ? std::nullopt
                               : std::make_optional(add_input(
                                     name, static_cast<int>(i),
                                     absl::StrCat(name, ".", i), ref->tensor)));
      }
      call_arguments.push_back({name, std::move(elements)});
      continue;
    }
    attributes.Set(name, ToStatic(value));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::optional<Value>> results,
                          rules.Call(builder, op, call_arguments, attributes));
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    call.results.push_back(results[i] ? static_cast<int>(outputs.size()) : -1);
    if (results[i]) outputs.push_back({absl::StrCat("y", i), *results[i]});
  }
  CLEAVE_ASSIGN_OR_RETURN(call.graph,
                          std::move(builder).Build(std::move(outputs)));
  return call;
}

std::vector<std::optional<Tensor>> TensorsFor(const CaseCall& call,
                                              const CaseArguments& arguments) {
  std::vector<std::optional<Tensor>> tensors;
  for (const auto& ref : RefsFor(call, arguments)) {
    tensors.push_back(ref ? std::make_optional(ref->tensor) : std::nullopt);
  }
  return tensors;
}

ExpectedOutputs RefsFor(const CaseCall& call, const CaseArguments& arguments) {
  ExpectedOutputs refs(call.arguments.size());
  for (const auto& [name, value] : arguments) {
    for (size_t i = 0; i < refs.size(); ++i) {
      if (call.arguments[i] != name) continue;
      const CaseValue* element = &value;
      if (const CaseValue::List* list = value.list()) {
        if (call.elements[i] >= static_cast<int>(list->size())) continue;
        element = &(*list)[call.elements[i]];
      }
      if (const auto* ref = element->tensor()) refs[i] = *ref;
    }
  }
  return refs;
}

}  // namespace cleave
