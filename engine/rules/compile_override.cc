// OpCompiler: the overrides of single transforms, jvp lines and vmap lines.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/rules/compile_op.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

bool IsInexact(const TermPtr& term) {
  return InClass(ResolvedDType(*term), DTypeClass::kInexact);
}

}  // namespace

absl::StatusOr<std::optional<RuleSet::JvpOverride>> OpCompiler::Jvp(
    const std::vector<bool>& active) {
  const cleave::Body& body = *callable_.item->body;
  const auto has_line = [&](const std::string& input) {
    return std::any_of(body.statements.begin(), body.statements.end(),
                       [&](const Statement& s) {
                         return s.kind == StatementKind::kJvp &&
                                s.equation.name == input;
                       });
  };
  RuleSet::JvpOverride override;
  bool any = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    const bool covered =
        active[i] && has_line(callable_.inputs[operands_[i].input].name);
    override.covered.push_back(covered);
    any = any || covered;
  }
  if (!any) return std::optional<RuleSet::JvpOverride>();
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TermPtr> primal, ElaborateBody());
  // Tangents: those covered are inputs, others are zero here.
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    const InputDecl& input = callable_.inputs[i];
    const std::string name = absl::StrCat("d", input.name);
    for (size_t k = 0; k < operands_.size(); ++k) {
      const Operand& operand = operands_[k];
      if (operand.input != i) continue;
      const TensorType type = builder_.type(operand.term->value);
      TermPtr tangent;
      if (override.covered[k]) {
        const Value value =
            builder_.Input(absl::StrCat(operand.name, ".tangent"), type);
        tangent = elaborator_.terms().InGraph(value, type);
        if (callable_.item->compute_acc) {
          CLEAVE_ASSIGN_OR_RETURN(tangent, Accumulated(tangent));
        }
      } else {
        const RuleValue* primal_value = body_scope_->Find(input.name);
        const DTypePtr dtype = primal_value->Is(Kind::kTerm)
                                   ? primal_value->AsTerm()->dtype
                                   : operand.term->dtype;
        tangent = elaborator_.terms().Zero(dtype, type.shape);
      }
      if (operand.place < 0) {
        body_scope_->Set(name, tangent);
      } else {
        RuleList list;
        if (const RuleValue* so_far = body_scope_->Find(name)) {
          list = so_far->AsList();
        }
        list.resize(operand.place + 1);
        list[operand.place] = tangent;
        body_scope_->Set(name, std::move(list));
      }
    }
  }
  const size_t result_count = raw_results_.size();
  for (size_t r = 0; r < result_count; ++r) {
    if (raw_results_[r] != nullptr) {
      body_scope_->Set(callable_.results[r].name, raw_results_[r]);
    }
  }
  std::vector<TermPtr> tangents(result_count);
  std::vector<Elaborator::DeclaredResult> declared;
  for (size_t r = 0; r < result_count; ++r) {
    Elaborator::DeclaredResult d;
    d.name = callable_.results[r].name;
    d.absent = primal[r] == nullptr;
    if (primal[r] != nullptr) {
      d.type = TermType{primal[r]->dtype, primal[r]->shape, {}};
    }
    declared.push_back(std::move(d));
  }
  for (const Statement& statement : body.statements) {
    if (statement.kind != StatementKind::kJvp) continue;
    bool covered = false;
    for (size_t k = 0; k < operands_.size(); ++k) {
      covered = covered || (override.covered[k] &&
                            callable_.inputs[operands_[k].input].name ==
                                statement.equation.name);
    }
    if (!covered) continue;
    CLEAVE_ASSIGN_OR_RETURN(
        const RuleValue value,
        elaborator_.Eval(*statement.equation.value, *body_scope_));
    if (value.Is(Kind::kImpossible)) {
      return absl::UnimplementedError(
          absl::StrCat("impossible: ", value.AsImpossible().why));
    }
    // `= 0`: not differentiated; one value stands for all results.
    const bool is_zero = value.IsNumber();
    for (size_t r = 0; r < result_count; ++r) {
      if (primal[r] == nullptr || !IsInexact(primal[r]) || is_zero) continue;
      RuleValue field = value;
      if (value.Is(Kind::kRecord)) {
        field = RuleValue();
        for (const auto& [name, v] : value.AsRecord()) {
          if (name == callable_.results[r].name) field = v;
        }
      }
      if (field.Is(Kind::kAbsent)) continue;
      CLEAVE_ASSIGN_OR_RETURN(TermPtr term,
                              elaborator_.ToTerm(field, statement.range));
      if (tangents[r] == nullptr) {
        tangents[r] = std::move(term);
      } else {
        absl::StatusOr<TermPtr> sum =
            elaborator_.terms().Pointwise(Primitive::kAdd, {tangents[r], term});
        if (!sum.ok()) return elaborator_.At(sum.status(), statement.range);
        tangents[r] = *std::move(sum);
      }
    }
  }
  std::vector<std::pair<std::string, TermPtr>> outputs;
  for (size_t r = 0; r < result_count; ++r) {
    if (primal[r] == nullptr || !IsInexact(primal[r])) continue;
    const TermType type{primal[r]->dtype, primal[r]->shape, {}};
    TermPtr tangent = tangents[r];
    if (tangent == nullptr) {
      tangent = elaborator_.terms().Zero(type.dtype, type.shape);
    } else {
      CLEAVE_ASSIGN_OR_RETURN(tangent, Finish(tangent, type, body.range));
    }
    outputs.emplace_back(absl::StrCat(callable_.results[r].name, ".tangent"),
                         std::move(tangent));
  }
  CLEAVE_ASSIGN_OR_RETURN(override.graph, BuildNamed(outputs));
  return std::optional<RuleSet::JvpOverride>(std::move(override));
}

absl::StatusOr<std::optional<RuleSet::VjpOverride>> OpCompiler::Vjp(
    const std::vector<bool>& live) {
  const cleave::Body& body = *callable_.item->body;
  const auto statement = std::find_if(
      body.statements.begin(), body.statements.end(),
      [](const Statement& s) { return s.kind == StatementKind::kVjp; });
  if (statement == body.statements.end()) {
    return std::optional<RuleSet::VjpOverride>();
  }
  const auto fail = [&](DiagnosticKind kind, const std::string& message) {
    return elaborator_.At(absl::InvalidArgumentError(message), statement->range,
                          kind);
  };
  const size_t result_count = callable_.results.size();
  if (statement->inputs.size() != result_count) {
    return fail(DiagnosticKind::kArgument,
                absl::StrCat("vjp names ", statement->inputs.size(),
                             " cotangents for ", result_count, " results"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<TermPtr> primal, ElaborateBody());
  size_t place = 0;  // among the results that are present
  for (size_t r = 0; r < result_count; ++r) {
    if (primal[r] == nullptr) continue;
    if (raw_results_[r] != nullptr) {
      body_scope_->Set(callable_.results[r].name, raw_results_[r]);
    }
    const std::string& name = statement->inputs[r].name;
    if (IsInexact(primal[r]) && live[place]) {
      const TensorType type{ResolvedDType(*primal[r]), primal[r]->shape};
      TermPtr cotangent = elaborator_.terms().InGraph(
          builder_.Input(absl::StrCat(callable_.results[r].name, ".cotangent"),
                         type),
          type);
      if (callable_.item->compute_acc) {
        CLEAVE_ASSIGN_OR_RETURN(cotangent, Accumulated(cotangent));
      }
      body_scope_->Set(name, std::move(cotangent));
    } else {
      body_scope_->Set(
          name, elaborator_.terms().Zero(primal[r]->dtype, primal[r]->shape));
    }
    ++place;
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const RuleValue value,
      elaborator_.Eval(*statement->equation.value, *body_scope_));
  if (!value.Is(Kind::kRecord)) {
    return fail(DiagnosticKind::kType,
                "vjp gives a record of cotangents by the inputs' names");
  }
  for (const auto& [name, unused] : value.AsRecord()) {
    if (std::none_of(callable_.inputs.begin(), callable_.inputs.end(),
                     [&, &name = name](const InputDecl& input) {
                       return input.name == name;
                     })) {
      return fail(DiagnosticKind::kUnknownName,
                  absl::StrCat("there is no input `", name, "`"));
    }
  }
  RuleSet::VjpOverride override;
  std::vector<std::pair<std::string, TermPtr>> outputs;
  for (const Operand& operand : operands_) {
    RuleValue field;
    for (const auto& [name, v] : value.AsRecord()) {
      if (name == callable_.inputs[operand.input].name) field = v;
    }
    if (operand.place >= 0 && field.Is(Kind::kList)) {
      const RuleList list = field.AsList();
      field = operand.place < static_cast<int>(list.size())
                  ? list[operand.place]
                  : RuleValue();
    }
    override.covered.push_back(!field.Is(Kind::kAbsent) &&
                               IsInexact(operand.term));
    if (!override.covered.back()) continue;
    const TermType type{operand.term->dtype, operand.term->shape, {}};
    TermPtr cotangent;
    if (field.IsNumber() && !field.Is(Kind::kTerm)) {
      cotangent = elaborator_.terms().Zero(type.dtype, type.shape);
    } else {
      CLEAVE_ASSIGN_OR_RETURN(const TermPtr term,
                              elaborator_.ToTerm(field, statement->range));
      CLEAVE_ASSIGN_OR_RETURN(cotangent, Finish(term, type, statement->range));
    }
    outputs.emplace_back(absl::StrCat(operand.name, ".cotangent"),
                         std::move(cotangent));
  }
  CLEAVE_ASSIGN_OR_RETURN(override.graph, BuildNamed(outputs));
  return std::optional<RuleSet::VjpOverride>(std::move(override));
}

absl::StatusOr<std::optional<Graph>> OpCompiler::Vmap(
    const std::vector<bool>& batched) {
  const cleave::Body& body = *callable_.item->body;
  for (const Statement& statement : body.statements) {
    if (statement.kind != StatementKind::kVmap) continue;
    bool applies = true;
    for (size_t k = 0; k < operands_.size(); ++k) {
      const std::string& name = callable_.inputs[operands_[k].input].name;
      bool unbatched = true;
      for (const Statement::OverrideInput& input : statement.inputs) {
        if (input.name == name) unbatched = input.unbatched;
      }
      applies = applies && batched[k] != unbatched;
    }
    if (!applies) continue;
    // The signature's names, with the batched operands as inputs.
    Scope scope(&binding_.scope);
    for (const Operand& operand : operands_) {
      const InputDecl& input = callable_.inputs[operand.input];
      TermPtr term = operand.term;
      if (callable_.item->compute_acc) {
        CLEAVE_ASSIGN_OR_RETURN(term, Accumulated(term));
      }
      RuleValue value(term);
      if (input.optional) value = std::move(value).Optional();
      if (operand.place < 0) {
        scope.Set(input.name, std::move(value));
        continue;
      }
      RuleList list = scope.Find(input.name)->AsList();
      list[operand.place] = std::move(value);
      scope.Set(input.name, std::move(list));
    }
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                            elaborator_.Eval(*statement.equation.value, scope));
    std::vector<Elaborator::DeclaredResult> declared;
    CLEAVE_ASSIGN_OR_RETURN(declared, Declared(true));
    CLEAVE_ASSIGN_OR_RETURN(std::vector<TermPtr> results,
                            Results(value, declared, statement.range));
    // The batch leads in each result.
    std::optional<Dim> batch;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (batched[k]) batch = operands_[k].term->shape[0];
    }
    for (size_t r = 0; r < results.size(); ++r) {
      if (results[r] == nullptr || !callable_.has_result_types) continue;
      TermType type = *binding_.results[r];
      type.shape.insert(type.shape.begin(), *batch);
      CLEAVE_ASSIGN_OR_RETURN(results[r],
                              Finish(results[r], type, statement.range));
    }
    CLEAVE_ASSIGN_OR_RETURN(Graph graph, Build(results));
    return std::optional<Graph>(std::move(graph));
  }
  return std::optional<Graph>();
}

}  // namespace cleave
