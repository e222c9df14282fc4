#include "engine/bind/call_layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/call_attributes.h"

namespace cleave {

absl::StatusOr<CallLayout> CallLayout::Of(const Callable& callable,
                                          const Attributes& attributes,
                                          size_t operands) {
  const StaticValue* given = attributes.Find(kLayout);
  CallLayout layout;
  size_t entries = 0;
  int next = 0;
  bool fits = true;
  for (const InputDecl& declared : callable.inputs) {
    Input& input = layout.inputs.emplace_back();
    if (declared.is_static) continue;
    if (given == nullptr) {
      input.operands.push_back(next++);
      continue;
    }
    fits = fits && entries < given->AsList().size();
    if (!fits) break;
    const StaticValue& entry = given->AsList()[entries++];
    input.list = entry.kind() == StaticValue::Kind::kList;
    const StaticValue::List one = {entry};
    for (const StaticValue& there : input.list ? entry.AsList() : one) {
      input.operands.push_back(there.AsBool() ? next++ : -1);
    }
  }
  // A node that was made for another op may have other operands.
  if (!fits || static_cast<size_t>(next) != operands) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", callable.name, "` does not take ", operands,
                     operands == 1 ? " tensor so" : " tensors so"));
  }
  return layout;
}

std::optional<StaticValue> CallLayout::ToAttribute() const {
  StaticValue::List entries;
  bool needed = false;
  for (const Input& input : inputs) {
    if (input.is_static()) continue;
    needed = needed || input.list || input.absent();
    if (!input.list) {
      entries.emplace_back(!input.absent());
      continue;
    }
    StaticValue::List elements;
    for (const int place : input.operands) elements.emplace_back(place >= 0);
    entries.emplace_back(std::move(elements));
  }
  if (!needed) return std::nullopt;
  return StaticValue(std::move(entries));
}

std::vector<size_t> CallLayout::InputsOfOperands() const {
  std::vector<size_t> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const int place : inputs[i].operands) {
      if (place >= 0) result.push_back(i);
    }
  }
  return result;
}

}  // namespace cleave
