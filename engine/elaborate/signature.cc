#include "engine/elaborate/signature.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "engine/elaborate/error_payload.h"
#include "engine/elaborate/signature_binder.h"
#include "engine/ir/call_attributes.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

// Variables in the types of results that nothing given has: extents known only
// when the graph runs.
std::set<std::string> NewVariables(const BoundCall& call) {
  std::set<std::string> known;
  std::set<std::string> found;
  const auto collect = [](const Shape& shape, std::set<std::string>* names) {
    for (const Dim& dim : shape) {
      const std::set<std::string> variables = dim.Variables();
      names->insert(variables.begin(), variables.end());
    }
  };
  for (const TermPtr& operand : call.operands) collect(operand->shape, &known);
  for (const auto& [name, value] : call.attributes.values()) {
    // The variables of the body itself are not given by their new names.
    if (absl::StartsWith(name, kNewPrefix)) continue;
    if (value.kind() == StaticValue::Kind::kInt) {
      collect({value.AsDim()}, &known);
    } else if (value.kind() == StaticValue::Kind::kList) {
      for (const StaticValue& element : value.AsList()) {
        if (element.kind() == StaticValue::Kind::kInt) {
          collect({element.AsDim()}, &known);
        }
      }
    }
  }
  for (const std::optional<TermType>& type : call.results) {
    if (type.has_value()) collect(type->shape, &found);
  }
  for (const std::string& name : known) found.erase(name);
  return found;
}

}  // namespace

absl::StatusOr<BoundCall> SignatureBinder::Run() {
  CLEAVE_RETURN_IF_ERROR(Place());
  CLEAVE_RETURN_IF_ERROR(BindSizeAttributes());
  CLEAVE_RETURN_IF_ERROR(BindDTypes());
  CLEAVE_RETURN_IF_ERROR(BindAxes());
  CLEAVE_RETURN_IF_ERROR(BindShapes());
  CLEAVE_RETURN_IF_ERROR(BindAttributes());
  CLEAVE_RETURN_IF_ERROR(BindInputs());
  CLEAVE_RETURN_IF_ERROR(BindLets());
  std::vector<ShapeGuard>& guards = elaborator_.guards();
  if (options_.check) {
    CLEAVE_RETURN_IF_ERROR(CheckWhere(callable_, call_.scope));
    CLEAVE_RETURN_IF_ERROR(
        CheckErrors(callable_, call_.scope, false, elaborator_, &guards));
    call_.checked = true;
  }
  if (callable_.has_result_types) CLEAVE_RETURN_IF_ERROR(BindResults());
  CLEAVE_RETURN_IF_ERROR(Complete());
  call_.guards = guards;
  return std::move(call_);
}

absl::Status SignatureBinder::BindLets() {
  for (const NamedExpr& let : callable_.item->lets) {
    absl::StatusOr<RuleValue> value = elaborator_.Eval(*let.value, call_.scope);
    if (!value.ok()) {
      // An `error` clause that holds may be the reason.
      std::vector<ShapeGuard> unused;
      if (options_.check) {
        CLEAVE_RETURN_IF_ERROR(
            CheckErrors(callable_, call_.scope, true, elaborator_, &unused));
      }
      return value.status();
    }
    call_.scope.Set(let.name, *std::move(value));
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::Complete() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    CallLayout::Input& input = call_.layout.inputs.emplace_back();
    if (callable_.inputs[i].is_static) continue;
    input.list = inputs_[i].Is(Kind::kList);
    const RuleList one = {inputs_[i]};
    for (const RuleValue& element : input.list ? inputs_[i].AsList() : one) {
      if (element.Is(Kind::kAbsent)) {
        input.operands.push_back(-1);
        continue;
      }
      input.operands.push_back(static_cast<int>(call_.operands.size()));
      call_.operands.push_back(element.AsTerm());
    }
  }
  if (std::optional<StaticValue> layout = call_.layout.ToAttribute()) {
    call_.attributes.Set(kLayout, *std::move(layout));
  }
  for (const auto& [name, extent] : call_.fresh) {
    call_.attributes.Set(absl::StrCat(kNewPrefix, name), extent);
  }
  for (const auto& [name, value] : arguments_.named) {
    if (!absl::StartsWith(name, kNewPrefix)) continue;
    CLEAVE_ASSIGN_OR_RETURN(StaticValue extent, ToStatic(value));
    call_.attributes.Set(name, std::move(extent));
  }
  return absl::OkStatus();
}

const RuleValue* GivenArguments::Find(absl::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

absl::Status SignatureBinder::Wrong(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat("`", callable_.name, "`: ", what));
}

absl::Status SignatureBinder::Place() {
  if (arguments_.positional.size() > callable_.positional.size()) {
    return Wrong(absl::StrCat("takes ", callable_.positional.size(),
                              " arguments by position, not ",
                              arguments_.positional.size()));
  }
  for (size_t i = 0; i < arguments_.positional.size(); ++i) {
    given_[callable_.positional[i]] = arguments_.positional[i];
  }
  for (const auto& [name, value] : arguments_.named) {
    if (!IsDeclared(name) && !absl::StartsWith(name, kNewPrefix)) {
      std::vector<std::string> names;
      for (const InputDecl& input : callable_.inputs) {
        names.push_back(input.name);
      }
      for (const AttributeDecl& attribute : callable_.attributes) {
        names.push_back(attribute.name);
      }
      const std::string closest = ClosestName(name, names);
      return Wrong(absl::StrCat(
          "has no argument `", name, "`",
          closest.empty() ? ""
                          : absl::StrCat("; did you mean `", closest, "`?")));
    }
    if (given_.count(name) > 0) {
      return Wrong(absl::StrCat("argument `", name, "` is given twice"));
    }
    given_[name] = value;
  }
  for (const InputDecl& input : callable_.inputs) {
    RuleValue value;
    const auto it = given_.find(input.name);
    if (it != given_.end()) value = it->second;
    if (value.Is(Kind::kAbsent) && !input.optional &&
        input.variadic_index.empty()) {
      return Wrong(absl::StrCat("argument `", input.name, "` is missing"));
    }
    CLEAVE_ASSIGN_OR_RETURN(value, AsInput(input, value));
    inputs_.push_back(std::move(value));
  }
  return absl::OkStatus();
}

bool SignatureBinder::IsDeclared(const std::string& name) const {
  for (const InputDecl& input : callable_.inputs) {
    if (input.name == name) return true;
  }
  for (const AttributeDecl& attribute : callable_.attributes) {
    if (attribute.name == name) return true;
  }
  return false;
}

absl::StatusOr<RuleValue> SignatureBinder::AsInput(const InputDecl& input,
                                                   const RuleValue& value) {
  const auto tensor = [&](const RuleValue& v) -> absl::StatusOr<RuleValue> {
    if (v.Is(Kind::kAbsent)) {
      if (input.optional) return v;
      return Wrong(absl::StrCat("an element of `", input.name, "` is absent"));
    }
    if (!v.IsDynamic() && !v.IsNumber() && !v.IsTruth()) {
      return Wrong(absl::StrCat("argument `", input.name,
                                "` must be a tensor, not ", v.KindName()));
    }
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, elaborator_.ToTerm(v, input.range));
    RuleValue result(std::move(term));
    return input.optional ? std::move(result).Optional() : result;
  };
  if (input.is_static) {
    if (value.IsDynamic()) {
      return Wrong(absl::StrCat("argument `", input.name,
                                "` must be known when the rule is expanded"));
    }
    RuleValue copy = value;
    return input.optional ? std::move(copy).Optional() : copy;
  }
  if (input.variadic_index.empty()) return tensor(value);
  RuleList list;
  if (value.Is(Kind::kList)) {
    for (const RuleValue& element : value.AsList()) {
      CLEAVE_ASSIGN_OR_RETURN(RuleValue x, tensor(element));
      list.push_back(std::move(x));
    }
  } else if (!value.Is(Kind::kAbsent)) {
    return Wrong(
        absl::StrCat("argument `", input.name, "` must be a list of tensors"));
  }
  return RuleValue(std::move(list));
}

const RuleValue* SignatureBinder::Given(const std::string& name) const {
  const auto it = given_.find(name);
  return it == given_.end() || it->second.Is(Kind::kAbsent) ? nullptr
                                                            : &it->second;
}

std::vector<std::pair<int, TermPtr>> SignatureBinder::Tensors(
    const RuleValue& value) {
  std::vector<std::pair<int, TermPtr>> tensors;
  if (value.Is(Kind::kTerm)) tensors.emplace_back(-1, value.AsTerm());
  if (value.Is(Kind::kList)) {
    for (size_t i = 0; i < value.AsList().size(); ++i) {
      if (value.AsList()[i].Is(Kind::kTerm)) {
        tensors.emplace_back(static_cast<int>(i), value.AsList()[i].AsTerm());
      }
    }
  }
  return tensors;
}

void SignatureBinder::Replace(size_t input, int place, TermPtr term) {
  RuleValue& value = inputs_[input];
  const bool optional = callable_.inputs[input].optional;
  RuleValue replaced(std::move(term));
  if (optional) replaced = std::move(replaced).Optional();
  if (place < 0) {
    value = std::move(replaced);
    return;
  }
  RuleList list = value.AsList();
  list[place] = std::move(replaced);
  value = RuleValue(std::move(list));
}

bool SignatureBinder::IsDTypeVariable(const std::string& name) const {
  for (const WhereClause& where : callable_.item->where) {
    if (where.variable == name) return true;
  }
  return !ParseDType(name).ok();
}

absl::Status SignatureBinder::BindDTypes() {
  for (const WhereClause& where : callable_.item->where) {
    bool is_attribute = false;
    for (const AttributeDecl& attribute : callable_.attributes) {
      is_attribute = is_attribute || attribute.name == where.variable;
    }
    if (!is_attribute) {
      call_.scope.Set(where.variable, DTypeVariable::Open());
    }
  }
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    const InputDecl& input = callable_.inputs[i];
    if (input.is_static || input.type.dtype == nullptr) continue;
    const Expr& dtype = *input.type.dtype;
    if (dtype.kind == ExprKind::kName && IsDTypeVariable(dtype.text) &&
        call_.scope.Find(dtype.text) == nullptr) {
      call_.scope.Set(dtype.text, DTypeVariable::Open());
    }
    if (dtype.kind != ExprKind::kName) continue;  // after the others
    CLEAVE_RETURN_IF_ERROR(UnifyInput(i));
  }
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    const InputDecl& input = callable_.inputs[i];
    if (!input.is_static && input.type.dtype != nullptr &&
        input.type.dtype->kind != ExprKind::kName) {
      CLEAVE_RETURN_IF_ERROR(UnifyInput(i));
    }
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::UnifyInput(size_t i) {
  const InputDecl& input = callable_.inputs[i];
  CLEAVE_ASSIGN_OR_RETURN(
      const DTypePtr wanted,
      elaborator_.EvalDType(*input.type.dtype, call_.scope));
  for (const auto& [place, tensor] : Tensors(inputs_[i])) {
    if (DTypeVariable::Unify(wanted, tensor->dtype)) continue;
    const DType is = *tensor->dtype->dtype();
    const DType want = *wanted->dtype();
    // Integers widen where an i64 is wanted.
    if (want == DType::kI64 && IsInt(is)) {
      CLEAVE_ASSIGN_OR_RETURN(TermPtr wide,
                              elaborator_.terms().Convert(tensor, wanted));
      Replace(i, place, std::move(wide));
      continue;
    }
    return Wrong(absl::StrCat("argument `", input.name, "` is ", DTypeName(is),
                              ", not ", DTypeName(want)));
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::BindInputs() {
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    const InputDecl& input = callable_.inputs[i];
    RuleValue& value = inputs_[i];
    if (input.is_static) {
      CLEAVE_RETURN_IF_ERROR(BindStatic(input, value));
      const absl::StatusOr<StaticValue> canonical = ToStatic(value);
      if (!canonical.ok()) {
        return Wrong(absl::StrCat("argument `", input.name, "` is not static"));
      }
      if (!canonical->is_none()) {
        call_.attributes.Set(input.name, *canonical);
      }
    } else if (input.type.has_shape) {
      WriteGroups(i);
    }
    call_.scope.Set(input.name, value);
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::BindStatic(const InputDecl& input,
                                         RuleValue& value) {
  const bool number = input.type.has_shape && input.type.axes.empty();
  if (number && value.Is(Kind::kList)) {
    if (value.AsList().size() != 1) {
      return Wrong(
          absl::StrCat("argument `", input.name, "` must be one number"));
    }
    value = RuleValue(value.AsList()[0]);
  } else if (!number && value.IsNumber()) {
    value = RuleValue(RuleList{value});
  }
  return absl::OkStatus();
}

absl::Status CheckErrors(const Callable& callable, const Scope& scope,
                         bool partial, Elaborator& elaborator,
                         std::vector<ShapeGuard>* guards) {
  for (const ErrorClause& error : callable.item->errors) {
    Scope inner(&scope);
    const auto truth = elaborator.EvalTruth(*error.condition, inner);
    if (partial && !truth.ok()) continue;
    CLEAVE_RETURN_IF_ERROR(truth.status());
    const bool* const known = std::get_if<bool>(&*truth);
    elaborator.Decide(*error.condition, known != nullptr && *known);
    if (known != nullptr) {
      if (!*known) continue;
      absl::Status status = absl::InvalidArgumentError(
          absl::StrCat(error.kind, ": ", error.message));
      status.SetPayload(kErrorClausePayload, absl::Cord(error.kind));
      const Source& source = *callable.source;
      status.SetPayload(
          kErrorPlacePayload,
          absl::Cord(absl::StrCat(source.name(), ":",
                                  source.PositionOf(error.range.begin).line)));
      return status;
    }
    const Condition fine = Negate(std::get<Condition>(*truth));
    guards->push_back({fine.lhs, fine.op, fine.rhs,
                       absl::StrCat("`", callable.name, "`: ", error.kind, ": ",
                                    error.message)});
  }
  return absl::OkStatus();
}

absl::Status SignatureBinder::BindResults() {
  for (const ResultDecl& result : callable_.results) {
    if (result.condition != nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(
          const bool present,
          elaborator_.EvalCondition(*result.condition, call_.scope,
                                    "a result is there by this size"));
      if (!present) {
        call_.results.push_back(std::nullopt);
        continue;
      }
    }
    TermType type;
    CLEAVE_ASSIGN_OR_RETURN(
        type.dtype, elaborator_.EvalDType(*result.type.dtype, call_.scope));
    for (const AxisExpr& axis : result.type.axes) {
      if (axis.is_new) {
        CLEAVE_ASSIGN_OR_RETURN(const Dim bound,
                                elaborator_.EvalDim(*axis.bound, call_.scope));
        const std::string& name = axis.size->text;
        const RuleValue* size = call_.scope.Find(name);
        if (size == nullptr) {
          const Dim fresh = NewExtent(name);
          call_.fresh.emplace_back(name, fresh);
          call_.scope.Set(name, fresh);
          elaborator_.guards().push_back(
              {fresh, CompareOp::kLe, bound,
               absl::StrCat("`", callable_.name, "`: the extent `", name,
                            "` is bounded")});
          type.shape.push_back(fresh);
        } else {
          type.shape.push_back(size->AsDim());
        }
        type.groups.push_back({false, 1});
      } else if (axis.size->kind == ExprKind::kSpread) {
        CLEAVE_ASSIGN_OR_RETURN(
            const Shape dims,
            elaborator_.EvalDims(*axis.size->children[0], call_.scope));
        type.shape.insert(type.shape.end(), dims.begin(), dims.end());
        type.groups.push_back({true, static_cast<int>(dims.size())});
      } else {
        CLEAVE_ASSIGN_OR_RETURN(const Dim dim,
                                elaborator_.EvalDim(*axis.size, call_.scope));
        type.shape.push_back(dim);
        type.groups.push_back({false, 1});
      }
    }
    call_.results.push_back(std::move(type));
  }
  return absl::OkStatus();
}

Dim SignatureBinder::NewExtent(const std::string& name) const {
  if (const RuleValue* given = Given(absl::StrCat(kNewPrefix, name))) {
    return given->AsDim();
  }
  return options_.new_extent == nullptr ? Dim::Variable(name)
                                        : options_.new_extent(name);
}

absl::StatusOr<BoundCall> Bind(const Callable& callable,
                               const GivenArguments& arguments,
                               const BindOptions& options,
                               Elaborator& elaborator) {
  return SignatureBinder(callable, arguments, options, elaborator).Run();
}

absl::Status BindHostResults(const Callees& callees, const BindOptions& options,
                             BoundCall* call) {
  if (call->callable->has_result_types) return absl::OkStatus();
  CLEAVE_ASSIGN_OR_RETURN(call->results, callees.ResultTypes(*call));
  std::map<std::string, Dim> names;
  for (const std::string& variable : NewVariables(*call)) {
    const std::string key = absl::StrCat(kNewPrefix, variable);
    if (const StaticValue* given = call->attributes.Find(key)) {
      names[variable] = given->AsDim();
      continue;
    }
    const std::string number = absl::StrCat(names.size());
    names[variable] = options.new_extent(number);
    call->attributes.Set(key, names[variable]);
  }
  for (std::optional<TermType>& type : call->results) {
    if (!type.has_value()) continue;
    for (Dim& dim : type->shape) dim = dim.Substitute(names);
  }
  return absl::OkStatus();
}

Attributes NodeAttributes(const BoundCall& call) {
  Attributes attributes = call.attributes;
  for (const AttributeDecl& declared : call.callable->attributes) {
    if (attributes.Find(declared.name) != nullptr) continue;
    const RuleValue* value = call.scope.Find(declared.name);
    if (value == nullptr || value->Is(Kind::kAbsent)) continue;
    absl::StatusOr<StaticValue> known = ToStatic(*value);
    if (known.ok()) attributes.Set(declared.name, *std::move(known));
  }
  return attributes;
}

absl::Status CheckWhere(const Callable& callable, const Scope& scope) {
  for (const WhereClause& where : callable.item->where) {
    const RuleValue* value = scope.Find(where.variable);
    if (value == nullptr || !value->Is(Kind::kDType)) continue;
    const absl::StatusOr<DTypeClass> wanted =
        ParseDTypeClass(where.dtype_class);
    if (!wanted.ok()) return wanted.status();
    const DTypePtr& variable = value->AsDType();
    if (!variable->dtype().has_value() && InClass(DType::kI64, *wanted)) {
      DTypeVariable::Unify(variable, DTypeVariable::Known(DType::kI64));
    }
    const std::optional<DType> dtype = variable->dtype();
    // A variable of absent inputs alone has no dtype.
    if (!dtype.has_value()) continue;
    if (!InClass(*dtype, *wanted)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", callable.name, "`: ", where.variable, " is ", DTypeName(*dtype),
          ", which is not of class ", where.dtype_class));
    }
  }
  return absl::OkStatus();
}

}  // namespace cleave
