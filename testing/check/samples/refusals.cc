#include "testing/check/samples/refusals.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "engine/elaborate/error_payload.h"
#include "testing/check/samples/expr_names.h"

namespace cleave {

Refusals::Refusals(const RuleSet& rules, const Item& item) {
  // Names that stand for others: a `let`, and an input for its type.
  std::map<std::string, std::set<std::string>> meant;
  for (const NamedExpr& let : item.lets) {
    CollectNames(let.value, meant[let.name]);
  }
  for (const InputDecl& input : item.inputs) {
    std::set<std::string>& names = meant[input.name];
    CollectNames(input.type.dtype, names);
    for (const AxisExpr& axis : input.type.axes) {
      CollectNames(axis.size, names);
    }
  }
  const Source& source = rules.SourceOf(item);
  for (const ErrorClause& error : item.errors) {
    std::set<std::string>& names = names_[absl::StrCat(
        source.name(), ":", source.PositionOf(error.range.begin).line)];
    CollectNames(error.condition, names);
    // Each name is expanded once, those that come of it too.
    std::set<std::string> left = names;
    while (!left.empty()) {
      const auto found = meant.find(*left.begin());
      left.erase(left.begin());
      if (found == meant.end()) continue;
      for (const std::string& name : found->second) {
        if (names.insert(name).second) left.insert(name);
      }
    }
  }
}

const std::set<std::string>* Refusals::NamesOf(
    const absl::Status& status) const {
  const auto place = status.GetPayload(kErrorPlacePayload);
  if (!place.has_value()) return nullptr;
  const auto found = names_.find(std::string(*place));
  return found == names_.end() ? nullptr : &found->second;
}

}  // namespace cleave
