// OpCompiler: the overrides of single transforms, jvp lines and vmap lines.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/rules/compile_op.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

bool IsInexact(const TermPtr& term) {
  return InClass(ResolvedDType(*term), DTypeClass::kInexact);
}

}  // namespace

absl::StatusOr<RuleValue> OpCompiler::TangentOf(
    size_t input, const std::vector<bool>& covered) {
  RuleValue result;
  RuleList list;
  bool variadic = false;
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Operand& operand = operands_[k];
    if (operand.input != input) continue;
    TermPtr& tangent = tangents_[k];
    const TensorType type = builder_.type(operand.term->value);
    if (tangent == nullptr && covered[k]) {
      const Value value =
          builder_.Input(absl::StrCat(operand.name, ".tangent"), type);
      tangent = elaborator_.terms().InGraph(value, type);
      if (callable_.item->compute_acc) {
        CLEAVE_ASSIGN_OR_RETURN(tangent, Accumulated(tangent));
      }
    } else if (tangent == nullptr) {
      const RuleValue* primal = body_scope_->Find(callable_.inputs[input].name);
      const DTypePtr dtype = primal->Is(Kind::kTerm) ? primal->AsTerm()->dtype
                                                     : operand.term->dtype;
      tangent = elaborator_.terms().Zero(dtype, type.shape);
    }
    if (operand.place < 0) {
      result = tangent;
      continue;
    }
    variadic = true;
    list.resize(operand.place + 1);
    list[operand.place] = tangent;
  }
  return variadic ? RuleValue(std::move(list)) : result;
}

absl::StatusOr<std::optional<RuleSet::JvpOverride>> OpCompiler::Jvp(
    const std::vector<bool>& active) {
  const std::vector<OpLine> lines = LinesOf(callable_, StatementKind::kJvp);
  const auto has_line = [&](const std::string& input) {
    return std::any_of(lines.begin(), lines.end(), [&](const OpLine& line) {
      return line.statement->equation.name == input;
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
  // Covered tangents are inputs of the graph, in the order of the operands.
  tangents_.assign(operands_.size(), nullptr);
  for (size_t i = 0; i < callable_.inputs.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(TangentOf(i, override.covered).status());
  }
  const size_t result_count = raw_results_.size();
  std::vector<TermPtr> tangents(result_count);
  SourceRange range;  // of the last line
  for (const OpLine& line : lines) {
    const Statement& statement = *line.statement;
    size_t input = 0;
    bool covered = false;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (override.covered[k] && callable_.inputs[operands_[k].input].name ==
                                     statement.equation.name) {
        input = operands_[k].input;
        covered = true;
      }
    }
    if (!covered) continue;
    range = statement.range;
    CLEAVE_ASSIGN_OR_RETURN(const Scope* part, EnterPart(line.part));
    Scope scope(part);
    SetResults(&scope);
    CLEAVE_ASSIGN_OR_RETURN(RuleValue tangent,
                            TangentOf(input, override.covered));
    scope.Set(statement.inputs.empty()
                  ? absl::StrCat("d", statement.equation.name)
                  : statement.inputs[0].name,
              std::move(tangent));
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                            elaborator_.EvalStatement(statement, scope));
    if (value.Is(Kind::kImpossible)) {
      return Impossible(value.AsImpossible().why);
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
      CLEAVE_ASSIGN_OR_RETURN(tangent, Finish(tangent, type, range));
    }
    outputs.emplace_back(absl::StrCat(callable_.results[r].name, ".tangent"),
                         std::move(tangent));
  }
  CLEAVE_ASSIGN_OR_RETURN(override.graph, BuildNamed(outputs));
  return std::optional<RuleSet::JvpOverride>(std::move(override));
}

absl::StatusOr<std::optional<RuleSet::VjpOverride>> OpCompiler::Vjp(
    const std::vector<bool>& live) {
  const std::vector<OpLine> lines = LinesOf(callable_, StatementKind::kVjp);
  if (lines.empty()) return std::optional<RuleSet::VjpOverride>();
  const Statement* statement = lines[0].statement;
  elaborator_.EnterSource(*lines[0].part.source);
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
  CLEAVE_ASSIGN_OR_RETURN(const Scope* part, EnterPart(lines[0].part));
  Scope scope(part);
  SetResults(&scope);
  size_t place = 0;  // among the results that are present
  for (size_t r = 0; r < result_count; ++r) {
    if (primal[r] == nullptr) continue;
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
      scope.Set(name, std::move(cotangent));
    } else {
      scope.Set(name,
                elaborator_.terms().Zero(primal[r]->dtype, primal[r]->shape));
    }
    ++place;
  }
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                          elaborator_.EvalStatement(*statement, scope));
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
  for (const OpLine& line : LinesOf(callable_, StatementKind::kVmap)) {
    const Statement& statement = *line.statement;
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
    elaborator_.EnterSource(*line.part.source);
    // The signature's names, with the batched operands as inputs.
    Scope scope(&call_.scope);
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
                            elaborator_.EvalStatement(statement, scope));
    std::vector<Elaborator::DeclaredResult> declared;
    CLEAVE_ASSIGN_OR_RETURN(declared, Declared());
    CLEAVE_ASSIGN_OR_RETURN(std::vector<TermPtr> results,
                            Results(value, declared, statement.range));
    // The batch leads in each result.
    std::optional<Dim> batch;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (batched[k]) batch = operands_[k].term->shape[0];
    }
    for (size_t r = 0; r < results.size(); ++r) {
      if (results[r] == nullptr || !callable_.has_result_types) continue;
      TermType type = *call_.results[r];
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
