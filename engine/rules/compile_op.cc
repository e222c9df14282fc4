#include "engine/rules/compile_op.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/call_attributes.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

OpCompiler::OpCompiler(const Library& library, const Callable& callable,
                       std::shared_ptr<Context> context, const Callees& callees)
    : library_(library),
      callable_(callable),
      context_(context),
      callees_(callees),
      elaborator_(library, *context, callable.name, &callees),
      builder_(context) {
  elaborator_.EnterSource(*callable.source);
}

absl::Status OpCompiler::BindSignature(const Signature& signature,
                                       const std::vector<bool>& batched,
                                       const Dim& batch) {
  const Attributes& attributes = context_->attributes(signature.attributes);
  CLEAVE_ASSIGN_OR_RETURN(
      const CallLayout layout,
      CallLayout::Of(callable_, attributes, signature.operands.size()));
  GivenArguments given;
  const auto input_of = [&](size_t operand, size_t input, int place) {
    TensorType type = context_->types(signature.operands[operand]).front();
    // Names of the signature are those of one example.
    const TermPtr one = elaborator_.terms().InGraph(Value(), type);
    if (operand < batched.size() && batched[operand]) {
      type.shape.insert(type.shape.begin(), batch);
    }
    std::string name = callable_.inputs[input].name;
    if (place >= 0) absl::StrAppend(&name, ".", place);
    const Value value = builder_.Input(name, type);
    TermPtr term = elaborator_.terms().InGraph(value, type);
    operands_.push_back({input, place, std::move(name), term});
    return RuleValue(batched.empty() ? term : one);
  };
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    const CallLayout::Input& input = layout.inputs[i];
    RuleList list;
    for (size_t k = 0; k < input.operands.size(); ++k) {
      const int operand = input.operands[k];
      list.push_back(
          operand < 0
              ? RuleValue()
              : input_of(operand, i, input.list ? static_cast<int>(k) : -1));
    }
    if (input.is_static()) continue;  // among the attributes
    given.named.emplace_back(callable_.inputs[i].name,
                             input.list ? RuleValue(std::move(list)) : list[0]);
  }
  for (const auto& [name, value] : attributes.values()) {
    if (absl::StartsWith(name, kNewPrefix)) {
      // The body of a host's op calls the extent by this name.
      elaborator_.dynamic_names()[name.substr(strlen(kNewPrefix))] =
          value.AsDim();
    }
    if (!IsCallAttribute(name)) {
      given.named.emplace_back(name, FromStatic(value));
    }
  }
  BindOptions options;
  options.new_extent = [&](absl::string_view name) {
    return Dim::Variable(absl::StrCat(callable_.name, ".", name));
  };
  CLEAVE_ASSIGN_OR_RETURN(call_, Bind(callable_, given, options, elaborator_));
  return CheckWhere(callable_, call_.scope);
}

absl::StatusOr<TermPtr> OpCompiler::Accumulated(const TermPtr& term) {
  const std::optional<DType> dtype = term->dtype->dtype();
  if (!dtype.has_value() || !IsFloat(*dtype)) return term;
  return elaborator_.terms().Convert(
      term, DTypeVariable::Known(AccumulationType(*dtype)));
}

absl::Status OpCompiler::EnterBody() {
  body_scope_ = std::make_unique<Scope>(&call_.scope);
  if (!callable_.item->compute_acc) return absl::OkStatus();
  for (const WhereClause& where : callable_.item->where) {
    const RuleValue* value = call_.scope.Find(where.variable);
    if (value == nullptr || !value->Is(Kind::kDType)) continue;
    const std::optional<DType> dtype = value->AsDType()->dtype();
    if (dtype.has_value() && IsFloat(*dtype)) {
      body_scope_->Set(where.variable,
                       DTypeVariable::Known(AccumulationType(*dtype)));
    }
  }
  for (const InputDecl& input : callable_.inputs) {
    if (input.is_static) continue;
    const RuleValue* value = call_.scope.Find(input.name);
    const auto accumulate = [&](const RuleValue& v) -> Elaborator::Result {
      if (!v.Is(Kind::kTerm)) return v;
      CLEAVE_ASSIGN_OR_RETURN(TermPtr term, Accumulated(v.AsTerm()));
      RuleValue result(std::move(term));
      return v.is_optional() ? std::move(result).Optional() : result;
    };
    if (value->Is(Kind::kList)) {
      RuleList list;
      for (const RuleValue& element : value->AsList()) {
        CLEAVE_ASSIGN_OR_RETURN(RuleValue x, accumulate(element));
        list.push_back(std::move(x));
      }
      body_scope_->Set(input.name, std::move(list));
    } else {
      CLEAVE_ASSIGN_OR_RETURN(RuleValue x, accumulate(*value));
      body_scope_->Set(input.name, std::move(x));
    }
  }
  return absl::OkStatus();
}

// A spec is over the reals: integers of a class that has other numbers, too,
// stand for reals. They stay integers where an attribute gives an integer
// dtype, to which a spec converts them: `sum[i](convert(x[i], dtype: D))`.
absl::Status OpCompiler::EnterReals(Scope* scope) {
  for (const AttributeDecl& attribute : callable_.item->attributes) {
    const RuleValue* value = call_.scope.Find(attribute.name);
    if (value == nullptr || !value->Is(Kind::kDType)) continue;
    const std::optional<DType> dtype = value->AsDType()->dtype();
    if (dtype.has_value() && IsInt(*dtype)) return absl::OkStatus();
  }
  for (const WhereClause& where : callable_.item->where) {
    const RuleValue* variable = call_.scope.Find(where.variable);
    if (variable == nullptr || !variable->Is(Kind::kDType) ||
        (where.dtype_class != "real" && where.dtype_class != "number")) {
      continue;
    }
    const std::optional<DType> dtype = variable->AsDType()->dtype();
    if (!dtype.has_value() || !IsInt(*dtype)) continue;
    const DTypePtr real = DTypeVariable::Known(DType::kF64);
    scope->Set(where.variable, real);
    for (const InputDecl& input : callable_.inputs) {
      if (input.is_static || input.type.dtype == nullptr ||
          input.type.dtype->kind != ExprKind::kName ||
          input.type.dtype->text != where.variable) {
        continue;
      }
      const RuleValue* value = call_.scope.Find(input.name);
      const auto convert = [&](const RuleValue& v) -> Elaborator::Result {
        if (!v.Is(Kind::kTerm)) return v;
        CLEAVE_ASSIGN_OR_RETURN(TermPtr term,
                                elaborator_.terms().Convert(v.AsTerm(), real));
        RuleValue result(std::move(term));
        return v.is_optional() ? std::move(result).Optional() : result;
      };
      if (value->Is(Kind::kList)) {
        RuleList list;
        for (const RuleValue& element : value->AsList()) {
          CLEAVE_ASSIGN_OR_RETURN(RuleValue x, convert(element));
          list.push_back(std::move(x));
        }
        scope->Set(input.name, std::move(list));
      } else {
        CLEAVE_ASSIGN_OR_RETURN(RuleValue x, convert(*value));
        scope->Set(input.name, std::move(x));
      }
    }
  }
  return absl::OkStatus();
}

// A real that leaves the range of the integer `dtype` wraps, as integer
// arithmetic does on the way to it: x - 2^bits floor((x - lowest) / 2^bits).
// Infinities stay. Reals of other results stay as they are.
absl::StatusOr<TermPtr> OpCompiler::Wrap(const TermPtr& x,
                                         const DTypePtr& dtype) {
  const std::optional<DType> from = x->dtype->dtype();
  const std::optional<DType> to = dtype->dtype();
  if (!from || !to || !IsFloat(*from) || !IsInt(*to)) return x;
  TermMaker& terms = elaborator_.terms();
  const int bits = 8 * static_cast<int>(ByteSize(*to));
  const Exact modulus = Exact::Pow(Exact(2), Exact(bits));
  const Exact lowest = IsSigned(*to) ? -modulus / Exact(2) : Exact(0);
  CLEAVE_ASSIGN_OR_RETURN(
      TermPtr turns,
      terms.Pointwise(Primitive::kSub, {x, terms.Number(lowest)}));
  CLEAVE_ASSIGN_OR_RETURN(
      turns, terms.Pointwise(Primitive::kDiv, {turns, terms.Number(modulus)}));
  CLEAVE_ASSIGN_OR_RETURN(turns, terms.Pointwise(Primitive::kFloor, {turns}));
  CLEAVE_ASSIGN_OR_RETURN(
      turns, terms.Pointwise(Primitive::kMul, {turns, terms.Number(modulus)}));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr wrapped,
                          terms.Pointwise(Primitive::kSub, {x, turns}));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr infinite,
                          terms.Pointwise(Primitive::kIsinf, {x}));
  return terms.Pointwise(Primitive::kSelect, {infinite, x, wrapped});
}

absl::StatusOr<std::vector<Elaborator::DeclaredResult>> OpCompiler::Declared() {
  std::vector<Elaborator::DeclaredResult> declared;
  for (size_t i = 0; i < callable_.results.size(); ++i) {
    const ResultDecl& result = callable_.results[i];
    Elaborator::DeclaredResult d;
    d.name = result.name;
    if (callable_.has_result_types) {
      d.type = call_.results[i];
      d.absent = !d.type.has_value();
      // `new n` is what the body gives: its range is not known before.
      if (d.type.has_value()) {
        for (const AxisExpr& axis : result.type.axes) {
          if (axis.is_new) d.type->groups.clear();
        }
        for (const auto& [name, fresh] : call_.fresh) {
          for (const Dim& dim : d.type->shape) {
            if (dim == fresh) d.type->shape.clear();
          }
        }
      }
    } else if (result.condition != nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(
          const bool present,
          elaborator_.EvalCondition(*result.condition, call_.scope,
                                    "a result is there by this size"));
      d.absent = !present;
    }
    declared.push_back(std::move(d));
  }
  const size_t mutated = callable_.item->mutates.size();
  declared.resize(declared.size() - mutated);
  return declared;
}

absl::StatusOr<std::vector<TermPtr>> OpCompiler::Results(
    const RuleValue& value,
    const std::vector<Elaborator::DeclaredResult>& declared,
    SourceRange range) {
  std::vector<TermPtr> results(declared.size());
  const auto to_term = [&](const RuleValue& v, size_t i) -> absl::Status {
    if (declared[i].absent || v.Is(Kind::kAbsent)) {
      if (!declared[i].absent && callable_.has_result_types) {
        return elaborator_.Fail(
            DiagnosticKind::kType, range,
            absl::StrCat("the result `", declared[i].name, "` is absent"));
      }
      return absl::OkStatus();
    }
    CLEAVE_ASSIGN_OR_RETURN(results[i], elaborator_.ToTerm(v, range));
    return absl::OkStatus();
  };
  if (callable_.has_result_list) {
    if (!value.Is(Kind::kList)) {
      return elaborator_.Fail(
          DiagnosticKind::kType, range,
          absl::StrCat("`", callable_.name, "` gives a list, not ",
                       value.KindName()));
    }
    results.clear();
    for (const RuleValue& element : value.AsList()) {
      CLEAVE_ASSIGN_OR_RETURN(TermPtr term, elaborator_.ToTerm(element, range));
      results.push_back(std::move(term));
    }
    return results;
  }
  if (!value.Is(Kind::kRecord)) {
    if (declared.size() != 1) {
      return elaborator_.Fail(
          DiagnosticKind::kType, range,
          absl::StrCat("`", callable_.name, "` has ", declared.size(),
                       " results; the body gives one"));
    }
    CLEAVE_RETURN_IF_ERROR(to_term(value, 0));
    return results;
  }
  const RuleRecord& record = value.AsRecord();
  for (size_t i = 0; i < declared.size(); ++i) {
    const RuleValue* field = nullptr;
    for (const auto& [name, v] : record) {
      if (name == declared[i].name) field = &v;
    }
    // Results of hosts stand in order.
    if (field == nullptr && record.size() == declared.size() &&
        !callable_.has_result_types) {
      field = &record[i].second;
    }
    if (field == nullptr) {
      return elaborator_.Fail(
          DiagnosticKind::kType, range,
          absl::StrCat("the body does not give `", declared[i].name, "`"));
    }
    CLEAVE_RETURN_IF_ERROR(to_term(*field, i));
  }
  if (callable_.has_result_types) {
    for (const auto& [name, v] : record) {
      const bool is_declared =
          std::any_of(declared.begin(), declared.end(),
                      [&name = name](const auto& d) { return d.name == name; });
      if (!is_declared) {
        return elaborator_.Fail(
            DiagnosticKind::kType, range,
            absl::StrCat("`", callable_.name, "` has no result `", name, "`"));
      }
    }
  }
  return results;
}

absl::StatusOr<TermPtr> OpCompiler::Finish(const TermPtr& term,
                                           const TermType& declared,
                                           SourceRange range) {
  TermPtr result = term;
  const std::optional<DType> want = declared.dtype->dtype();
  const std::optional<DType> is = term->dtype->dtype();
  if (want.has_value() && callable_.item->compute_acc && IsFloat(*want) &&
      (!is.has_value() || *is == AccumulationType(*want))) {
    DTypeVariable::Unify(term->dtype,
                         DTypeVariable::Known(AccumulationType(*want)));
    CLEAVE_ASSIGN_OR_RETURN(result,
                            elaborator_.terms().Convert(term, declared.dtype));
  } else if (!DTypeVariable::Unify(term->dtype, declared.dtype)) {
    return elaborator_.Fail(
        DiagnosticKind::kType, range,
        absl::StrCat("the result is ", DTypeName(ResolvedDType(*term)),
                     ", not ", DTypeName(*want)));
  }
  const bool is_number = result->kind == TermKind::kNumber ||
                         result->kind == TermKind::kDim || IsZero(result);
  if (is_number && result->shape != declared.shape) {
    return elaborator_.terms().BroadcastTo(result, declared.shape);
  }
  bool fits = result->shape.size() == declared.shape.size();
  for (size_t d = 0; fits && d < declared.shape.size(); ++d) {
    fits = elaborator_.terms().RequireEqual(
        result->shape[d], declared.shape[d],
        absl::StrCat("`", callable_.name, "`: the declared extent"));
  }
  if (!fits) {
    return elaborator_.Fail(
        DiagnosticKind::kShape, range,
        absl::StrCat("the result has shape ", ShapeToString(result->shape),
                     ", not ", ShapeToString(declared.shape)));
  }
  return result;
}

absl::StatusOr<std::vector<TermPtr>> OpCompiler::ElaborateBody() {
  CLEAVE_ASSIGN_OR_RETURN(std::vector<TermPtr> results, ElaborateBodyOnce());
  // The body gives `new n`: the call's name for it is used throughout.
  bool renamed = false;
  for (size_t i = 0; i < results.size() && !call_.fresh.empty(); ++i) {
    if (results[i] == nullptr || i >= call_.results.size()) continue;
    const Shape& declared = call_.results[i]->shape;
    for (const auto& [name, fresh] : call_.fresh) {
      for (size_t d = 0; d < declared.size(); ++d) {
        const Dim& is = results[i]->shape[d];
        if (declared[d] != fresh || is == fresh) continue;
        const std::set<std::string> variables = is.Variables();
        if (variables.size() != 1 || is != Dim::Variable(*variables.begin())) {
          elaborator_.EnterSource(*callable_.source);
          return elaborator_.Fail(
              DiagnosticKind::kShape, callable_.results[i].range,
              absl::StrCat("`", name, "` is ", is.ToString(),
                           ", which is no extent of its own"));
        }
        elaborator_.dynamic_names().emplace(*variables.begin(), fresh);
        renamed = true;
      }
    }
  }
  if (!renamed) return results;
  elaborator_.Restart();
  return ElaborateBodyOnce();
}

absl::StatusOr<const Scope*> OpCompiler::EnterPart(const BodyPart& part) {
  elaborator_.EnterSource(*part.source);
  std::unique_ptr<Scope>& scope = part_scopes_[part.item];
  if (scope == nullptr) {
    scope = std::make_unique<Scope>(body_scope_.get());
    CLEAVE_RETURN_IF_ERROR(elaborator_.EvalLets(*part.item->body, *scope));
  }
  return scope.get();
}

void OpCompiler::SetResults(Scope* scope) const {
  for (size_t r = 0; r < raw_results_.size(); ++r) {
    if (raw_results_[r] != nullptr) {
      scope->Set(ResultName(callable_, r), raw_results_[r]);
    }
  }
}

absl::StatusOr<std::vector<TermPtr>> OpCompiler::ElaborateCall() {
  CLEAVE_RETURN_IF_ERROR(EnterBody());
  CLEAVE_ASSIGN_OR_RETURN(const auto declared, Declared());
  if (!call_.fresh.empty()) {
    return Impossible("ragged");
  }
  const SourceRange range = callable_.item->range;
  elaborator_.SetPlace(range);
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                          elaborator_.CallBound(call_, range));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<TermPtr> results,
                          Results(value, declared, range));
  raw_results_ = results;
  if (!callable_.item->compute_acc) return results;
  for (TermPtr& result : raw_results_) {
    if (result == nullptr) continue;
    CLEAVE_ASSIGN_OR_RETURN(result, Accumulated(result));
  }
  return results;
}

absl::StatusOr<std::vector<TermPtr>> OpCompiler::ElaborateBodyOnce() {
  part_scopes_.clear();
  const std::vector<OpLine> lines = LinesOf(callable_, StatementKind::kResult);
  if (lines.empty()) return ElaborateCall();
  CLEAVE_RETURN_IF_ERROR(EnterBody());
  CLEAVE_ASSIGN_OR_RETURN(const auto declared, Declared());
  const BodyPart& part = lines[0].part;
  auto scope = std::make_unique<Scope>(body_scope_.get());
  elaborator_.EnterSource(*part.source);
  CLEAVE_ASSIGN_OR_RETURN(
      const RuleValue value,
      elaborator_.EvalBody(*part.item->body, *scope, declared));
  part_scopes_[part.item] = std::move(scope);
  const SourceRange range = lines[0].statement->range;
  CLEAVE_ASSIGN_OR_RETURN(raw_results_, Results(value, declared, range));
  std::vector<TermPtr> finished;
  for (size_t i = 0; i < raw_results_.size(); ++i) {
    if (raw_results_[i] == nullptr) {
      finished.push_back(nullptr);
      continue;
    }
    if (!callable_.has_result_types) {
      finished.push_back(raw_results_[i]);
      continue;
    }
    TermType type = *call_.results[i];
    // Extents that the body determines.
    for (const auto& [name, fresh] : call_.fresh) {
      for (size_t d = 0; d < type.shape.size(); ++d) {
        if (type.shape[d] == fresh && d < raw_results_[i]->shape.size()) {
          type.shape[d] = raw_results_[i]->shape[d];
        }
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, Finish(raw_results_[i], type, range));
    finished.push_back(std::move(term));
  }
  for (const Equation& mutates : callable_.item->mutates) {
    CLEAVE_ASSIGN_OR_RETURN(
        const RuleValue v,
        elaborator_.Eval(*mutates.value, *part_scopes_[part.item]));
    if (v.Is(Kind::kAbsent)) {
      finished.push_back(nullptr);
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, elaborator_.ToTerm(v, mutates.range));
    finished.push_back(std::move(term));
  }
  return finished;
}

absl::StatusOr<std::vector<TermPtr>> OpCompiler::ElaborateSpec() {
  Scope scope(&call_.scope);
  CLEAVE_RETURN_IF_ERROR(EnterReals(&scope));
  CLEAVE_ASSIGN_OR_RETURN(const auto declared, Declared());
  const cleave::Body& spec = *callable_.item->spec;
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                          elaborator_.EvalBody(spec, scope, declared));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TermPtr> raw,
                          Results(value, declared, spec.range));
  std::vector<TermPtr> finished;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == nullptr) {
      finished.push_back(nullptr);
      continue;
    }
    // Numbers take the declared dtype; what was computed over the reals is
    // converted where an integer is declared.
    DTypeVariable::Unify(raw[i]->dtype, call_.results[i]->dtype);
    CLEAVE_ASSIGN_OR_RETURN(TermPtr whole,
                            Wrap(raw[i], call_.results[i]->dtype));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, elaborator_.terms().Convert(
                                              whole, call_.results[i]->dtype));
    if (term->shape != call_.results[i]->shape) {
      absl::StatusOr<TermPtr> broadcast =
          elaborator_.terms().BroadcastTo(term, call_.results[i]->shape);
      if (!broadcast.ok()) {
        return elaborator_.At(broadcast.status(), spec.range);
      }
      term = *std::move(broadcast);
    }
    finished.push_back(std::move(term));
  }
  return finished;
}

absl::StatusOr<Graph> OpCompiler::BuildNamed(
    const std::vector<std::pair<std::string, TermPtr>>& terms) {
  TermLowerer lowerer(builder_, &callees_);
  std::vector<NamedValue> outputs;
  for (const auto& [name, term] : terms) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value, lowerer.Lower(term));
    outputs.push_back({name, value});
  }
  for (const ShapeGuard& guard : elaborator_.guards()) {
    builder_.AddGuard(guard);
  }
  return std::move(builder_).Build(std::move(outputs));
}

absl::StatusOr<Graph> OpCompiler::Build(const std::vector<TermPtr>& terms) {
  std::vector<std::pair<std::string, TermPtr>> named;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i] != nullptr) {
      named.emplace_back(ResultName(callable_, i), terms[i]);
    }
  }
  return BuildNamed(named);
}

absl::StatusOr<Graph> OpCompiler::Body() {
  if (LinesOf(callable_, StatementKind::kResult).empty()) {
    return Impossible("no decomposition");
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TermPtr> terms, ElaborateBody());
  return Build(terms);
}

absl::StatusOr<Graph> OpCompiler::Spec() {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TermPtr> terms, ElaborateSpec());
  return Build(terms);
}

absl::StatusOr<std::vector<std::optional<TermType>>> OpCompiler::ResultTypes() {
  if (callable_.has_result_types) return call_.results;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TermPtr> terms, ElaborateBody());
  std::vector<std::optional<TermType>> types;
  for (const TermPtr& term : terms) {
    if (term == nullptr) {
      types.push_back(std::nullopt);
    } else {
      types.push_back(TermType{DTypeVariable::Known(ResolvedDType(*term)),
                               term->shape, term->groups});
    }
  }
  return types;
}

}  // namespace cleave
