#include "engine/rules/check_calls.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/ir/call_attributes.h"
#include "engine/rules/call_of.h"
#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Whether the attribute is a list of `length` bools.
bool IsBools(const StaticValue* value, size_t length) {
  if (value == nullptr || value->kind() != StaticValue::Kind::kList) {
    return false;
  }
  for (const StaticValue& entry : value->AsList()) {
    if (entry.kind() != StaticValue::Kind::kBool) return false;
  }
  return value->AsList().size() == length;
}

bool IsList(const StaticValue* value) {
  return value != nullptr && value->kind() == StaticValue::Kind::kList;
}

class CallChecker {
 public:
  CallChecker(const Graph& graph, const RuleSet& rules)
      : graph_(graph), rules_(rules) {}

  absl::Status Run() {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      const Value v{id};
      // An input is a node of no op that is called.
      if (IsPrimitive(graph_.node(v).op)) {
        CLEAVE_RETURN_IF_ERROR(CheckRegions(v));
        continue;
      }
      const absl::Status status = CheckCall(v);
      if (!status.ok()) {
        return absl::Status(
            status.code(), absl::StrCat("`", Name(v), "`: ", status.message()));
      }
    }
    return absl::OkStatus();
  }

 private:
  std::string Name(Value v) const {
    return std::string(graph_.context()->op_name(graph_.node(v).op));
  }

  absl::Status CheckRegions(Value v) {
    for (const auto& [name, value] : graph_.attributes(v).values()) {
      if (value.kind() != StaticValue::Kind::kRegion) continue;
      CLEAVE_RETURN_IF_ERROR(
          Deeper([&] { return CheckCalls(*value.AsRegion().graph, rules_); }));
    }
    return absl::OkStatus();
  }

  // A list with, for each input, a bool or a list of bools.
  static bool IsLayout(const StaticValue& layout) {
    if (!IsList(&layout)) return false;
    for (const StaticValue& entry : layout.AsList()) {
      if (entry.kind() == StaticValue::Kind::kBool) continue;
      if (!IsList(&entry) || !IsBools(&entry, entry.AsList().size())) {
        return false;
      }
    }
    return true;
  }

  absl::Status CheckCall(Value v) {
    const StaticValue* layout = graph_.attributes(v).Find(kLayout);
    if (layout != nullptr && !IsLayout(*layout)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the attribute `", kLayout, "` is no list of bools"));
    }
    const Signature signature = RuleSet::SignatureOf(graph_, v);
    if (DerivedFrom(Name(v)).has_value()) {
      CLEAVE_RETURN_IF_ERROR(CheckDerived(v));
      CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules_.Body(signature));
      return CheckResults(v, *body);
    }
    for (const char* attribute : {kActive, kLive, kBatched}) {
      if (graph_.attributes(v).Find(attribute) != nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("it has no attribute `", attribute, "`"));
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(const Graph call, CallOf(rules_, signature));
    return CheckResults(v, call);
  }

  // The attributes that say what is derived, which RuleSet reads unchecked.
  absl::Status CheckDerived(Value v) {
    const Attributes& attributes = graph_.attributes(v);
    const size_t operands = graph_.operands(v).size();
    const auto malformed = [](absl::string_view attribute) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the attribute `", attribute, "` is not there, or does not fit"));
    };
    if (IsBatchCall(Name(v))) {
      const StaticValue* batches = attributes.Find(kBatched);
      if (!IsList(batches) || batches->AsList().empty()) {
        return malformed(kBatched);
      }
      std::vector<int> depth(operands, 0);
      for (const StaticValue& batch : batches->AsList()) {
        if (!IsBools(&batch, operands)) return malformed(kBatched);
        bool any = false;
        for (size_t i = 0; i < operands; ++i) {
          if (!batch.AsList()[i].AsBool()) continue;
          any = true;
          if (++depth[i] > graph_.type(graph_.operands(v)[i]).rank()) {
            return malformed(kBatched);
          }
        }
        if (!any) return malformed(kBatched);
      }
      return CheckOneBatch(v, *batches);
    }
    const StaticValue* active = attributes.Find(kActive);
    if (!IsList(active) || active->AsList().size() > operands ||
        !IsBools(active, active->AsList().size())) {
      return malformed(kActive);
    }
    size_t further = 0;
    for (const StaticValue& entry : active->AsList()) {
      further += entry.AsBool() ? 1 : 0;
    }
    if (absl::StartsWith(Name(v), kVjpCallPrefix)) {
      const StaticValue* live = attributes.Find(kLive);
      if (!IsList(live) || !IsBools(live, live->AsList().size())) {
        return malformed(kLive);
      }
      further = 0;
      for (const StaticValue& entry : live->AsList()) {
        further += entry.AsBool() ? 1 : 0;
      }
    }
    if (active->AsList().size() + further != operands) {
      return malformed(kActive);
    }
    return absl::OkStatus();
  }

  // The operands of each batch have one extent for it.
  absl::Status CheckOneBatch(Value v, const StaticValue& batches) {
    const absl::Span<const Value> operands = graph_.operands(v);
    std::vector<int> axis(operands.size(), 0);
    for (size_t b = batches.AsList().size(); b-- > 0;) {
      const Dim* extent = nullptr;
      for (size_t i = 0; i < operands.size(); ++i) {
        if (!batches.AsList()[b].AsList()[i].AsBool()) continue;
        const Dim& own = graph_.type(operands[i]).shape[axis[i]++];
        if (extent != nullptr && *extent != own) {
          return absl::InvalidArgumentError(
              absl::StrCat("one batch has the extents ", extent->ToString(),
                           " and ", own.ToString()));
        }
        extent = &own;
      }
    }
    return absl::OkStatus();
  }

  // The results of the call, as it is made anew, are those that are written.
  absl::Status CheckResults(Value v, const Graph& made) {
    const std::vector<TensorType>& written = graph_.types(v);
    if (made.outputs().size() != written.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has ", made.outputs().size(), " results, not ", written.size()));
    }
    for (size_t i = 0; i < written.size(); ++i) {
      const TensorType& type = made.type(made.outputs()[i].value);
      if (type == written[i]) continue;
      if (SameButNew(v, type, written[i])) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "its result ", written.size() > 1 ? absl::StrCat(i, " ") : "", "is ",
          type.ToString(), ", not ", written[i].ToString()));
    }
    return absl::OkStatus();
  }

  // Whether they differ in sizes alone that each call names anew: those known
  // only when it is run.
  bool SameButNew(Value v, const TensorType& made,
                  const TensorType& written) const {
    if (made.dtype != written.dtype || made.rank() != written.rank()) {
      return false;
    }
    for (int d = 0; d < made.rank(); ++d) {
      if (made.shape[d] == written.shape[d]) continue;
      bool is_new = false;
      for (const auto& [name, value] : graph_.attributes(v).values()) {
        is_new |= absl::StartsWith(name, kNewPrefix) &&
                  value.kind() == StaticValue::Kind::kInt &&
                  value.AsDim() == written.shape[d] &&
                  !written.shape[d].IsConstant();
      }
      if (!is_new) return false;
    }
    return true;
  }

  const Graph& graph_;
  const RuleSet& rules_;
};

}  // namespace

absl::Status CheckCalls(const Graph& graph, const RuleSet& rules) {
  return CallChecker(graph, rules).Run();
}

}  // namespace cleave
