#include "engine/eager/dim_scope.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/eager/match_dims.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/bind.h"
#include "ops/checked_dim.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

const char* OpText(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return " == ";
    case CompareOp::kNe:
      return " != ";
    case CompareOp::kLt:
      return " < ";
    case CompareOp::kLe:
      return " <= ";
    case CompareOp::kGt:
      return " > ";
    case CompareOp::kGe:
      return " >= ";
  }
  return " ? ";
}

// `n + 1`, or `n + 1 = 4` where the value says more.
std::string WithValue(const Dim& dim, const Dim& value) {
  return dim == value ? dim.ToString()
                      : absl::StrCat(dim.ToString(), " = ", value.ToString());
}

}  // namespace

struct DimScope::State {
  std::map<std::string, Dim> values;
  std::atomic<bool> ended = false;
};

std::vector<std::shared_ptr<DimScope::State>>& DimScope::Scopes() {
  thread_local std::vector<std::shared_ptr<State>> scopes;
  while (!scopes.empty() && scopes.back()->ended) scopes.pop_back();
  return scopes;
}

DimScope::DimScope() : state_(std::make_shared<State>()) {
  Scopes().push_back(state_);
}

DimScope::~DimScope() { state_->ended = true; }

absl::Status DimScope::Set(absl::string_view variable, const Dim& value) {
  CLEAVE_RETURN_IF_ERROR(Dim::Variable(variable).status());
  CLEAVE_RETURN_IF_ERROR(value.status());
  if (Compare(value, CompareOp::kGe, 0) == Truth::kFalse) {
    return absl::InvalidArgumentError(absl::StrCat(
        variable, " is ", value.ToString(), ", but must be at least 0"));
  }
  const auto [at, is_new] =
      state_->values.emplace(std::string(variable), value);
  if (is_new || at->second == value) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(variable, " is ", value.ToString(), ", but was ",
                   at->second.ToString(), " before"));
}

absl::Status DimScope::Bind(const Tensor& tensor, const Shape& declared,
                            absl::string_view what) {
  CLEAVE_RETURN_IF_ERROR(tensor.status());
  if (!tensor.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is a number and has no shape"));
  }
  return BindShape(tensor.shape(), declared, what);
}

absl::Status DimScope::BindAll(const std::vector<Tensor>& tensors,
                               const std::vector<Shape>& declared) {
  if (tensors.size() != declared.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensors.size(), " tensors are given, ", declared.size(),
                     " are declared"));
  }
  std::vector<DimMatch> equations;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string what = absl::StrCat("argument ", i);
    CLEAVE_RETURN_IF_ERROR(tensors[i].status());
    if (!tensors[i].valid()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " is a number and has no shape"));
    }
    const Shape& shape = tensors[i].shape();
    if (shape.size() != declared[i].size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has the shape ", ShapeToString(shape),
                       ", but is declared ", ShapeToString(declared[i])));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back(
          {declared[i][d], shape[d], absl::StrCat("axis ", d, " of ", what)});
    }
  }
  return BindEquations(std::move(equations));
}

absl::Status DimScope::BindShape(const Shape& shape, const Shape& declared,
                                 absl::string_view what) {
  if (shape.size() != declared.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has the shape ", ShapeToString(shape),
                     ", but is declared ", ShapeToString(declared)));
  }
  std::vector<DimMatch> equations;
  for (size_t d = 0; d < shape.size(); ++d) {
    equations.push_back(
        {declared[d], shape[d], absl::StrCat("axis ", d, " of ", what)});
  }
  return BindEquations(std::move(equations));
}

absl::Status DimScope::BindEquations(std::vector<DimMatch> equations) {
  std::map<std::string, Dim> values = BoundDims();
  CLEAVE_RETURN_IF_ERROR(MatchDims(std::move(equations), &values));
  for (const auto& [name, value] : BoundDims()) values.erase(name);
  state_->values.insert(values.begin(), values.end());
  return absl::OkStatus();
}

absl::Status MatchDims(std::vector<DimMatch> equations,
                       std::map<std::string, Dim>* values) {
  // Numbers are solved for by engine/ir; a variable alone may be bound to an
  // extent of a trace. An equation that has such an extent is compared, not
  // solved.
  std::vector<DimEquation> numbers;
  std::vector<DimMatch> symbolic;
  for (DimMatch& equation : equations) {
    CLEAVE_RETURN_IF_ERROR(CheckDims({equation.declared, equation.actual}));
    const std::set<std::string> names = equation.declared.Variables();
    if (!equation.actual.IsConstant() && names.size() == 1 &&
        equation.declared == Dim::Variable(*names.begin())) {
      values->emplace(*names.begin(), equation.actual);
    }
  }
  DimValues known;
  for (const auto& [name, value] : *values) {
    if (value.IsConstant()) known.emplace(name, *value.Value());
  }
  for (DimMatch& equation : equations) {
    bool is_symbolic = !equation.actual.IsConstant();
    for (const std::string& name : equation.declared.Variables()) {
      is_symbolic |= values->count(name) > 0 && known.count(name) == 0;
    }
    if (is_symbolic) {
      symbolic.push_back(std::move(equation));
    } else {
      numbers.push_back({equation.declared, *equation.actual.Value(),
                         std::move(equation.what)});
    }
  }
  CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(numbers), &known));
  for (const auto& [name, value] : known) values->emplace(name, value);
  for (const DimMatch& equation : symbolic) {
    for (const std::string& name : equation.declared.Variables()) {
      if (values->count(name) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          equation.what, " is ", equation.actual.ToString(), ", but must be ",
          equation.declared.ToString(), ", which does not determine ", name));
    }
    CLEAVE_ASSIGN_OR_RETURN(const Dim value,
                            equation.declared.CheckedSubstitute(*values));
    const Truth same = Compare(value, CompareOp::kEq, equation.actual);
    if (same == Truth::kTrue) continue;
    const std::string message =
        absl::StrCat(equation.what, " is ", equation.actual.ToString(),
                     ", but must be ", WithValue(equation.declared, value));
    const std::shared_ptr<Recorder> trace = CurrentTrace();
    if (same == Truth::kFalse || trace == nullptr) {
      return absl::InvalidArgumentError(message);
    }
    trace->builder().AddGuard(
        {value, CompareOp::kEq, equation.actual, message});
  }
  return absl::OkStatus();
}

absl::Status DimScope::Require(const Dim& a, CompareOp op, const Dim& b) const {
  CLEAVE_ASSIGN_OR_RETURN(const Dim x, ResolveDim(a));
  CLEAVE_ASSIGN_OR_RETURN(const Dim y, ResolveDim(b));
  const Truth holds = Compare(x, op, y);
  if (holds == Truth::kTrue) return absl::OkStatus();
  const std::string message =
      absl::StrCat(a.ToString(), OpText(op), b.ToString(), " is required, but ",
                   WithValue(a, x), " and ", WithValue(b, y));
  if (holds == Truth::kFalse) return absl::FailedPreconditionError(message);
  const std::shared_ptr<Recorder> trace = CurrentTrace();
  if (trace == nullptr) return absl::InvalidArgumentError(message);
  trace->builder().AddGuard(
      {x, op, y, absl::StrCat(a.ToString(), OpText(op), b.ToString())});
  return absl::OkStatus();
}

std::map<std::string, Dim> BoundDims() {
  std::map<std::string, Dim> bound;
  const auto& scopes = DimScope::Scopes();
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if ((*scope)->ended) continue;
    bound.insert((*scope)->values.begin(), (*scope)->values.end());
  }
  return bound;
}

absl::StatusOr<Dim> ResolveDim(const Dim& dim) {
  if (dim.IsConstant()) return dim;
  if (!dim.valid()) return dim.status();
  const auto& scopes = DimScope::Scopes();
  std::map<std::string, Dim> values;
  for (const std::string& name : dim.Variables()) {
    bool found = false;
    for (auto scope = scopes.rbegin(); scope != scopes.rend() && !found;
         ++scope) {
      if ((*scope)->ended) continue;
      const auto at = (*scope)->values.find(name);
      found = at != (*scope)->values.end();
      if (found) values.emplace(name, at->second);
    }
    if (found || InTrace()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("`", dim.ToString(), "` needs a value for ", name,
                     ", which no DimScope binds"));
  }
  return dim.CheckedSubstitute(values);
}

absl::StatusOr<Shape> ResolveShape(const Shape& shape) {
  Shape result;
  for (const Dim& dim : shape) {
    CLEAVE_ASSIGN_OR_RETURN(Dim resolved, ResolveDim(dim));
    result.push_back(std::move(resolved));
  }
  return result;
}

absl::StatusOr<StaticValue> ResolveValue(const StaticValue& value) {
  switch (value.kind()) {
    case StaticValue::Kind::kInt: {
      CLEAVE_ASSIGN_OR_RETURN(Dim resolved, ResolveDim(value.AsDim()));
      return StaticValue(std::move(resolved));
    }
    case StaticValue::Kind::kList: {
      StaticValue::List list;
      for (const StaticValue& element : value.AsList()) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue resolved, ResolveValue(element));
        list.push_back(std::move(resolved));
      }
      return StaticValue(std::move(list));
    }
    case StaticValue::Kind::kRecord: {
      StaticValue::Record record;
      for (const auto& [name, field] : value.AsRecord()) {
        CLEAVE_ASSIGN_OR_RETURN(StaticValue resolved, ResolveValue(field));
        record.emplace_back(name, std::move(resolved));
      }
      return StaticValue(std::move(record));
    }
    default:
      return value;
  }
}

absl::StatusOr<Attributes> ResolveAttributes(const Attributes& attributes) {
  if (!HasDimVariables(attributes)) return attributes;
  Attributes result;
  for (const auto& [name, value] : attributes.values()) {
    CLEAVE_ASSIGN_OR_RETURN(StaticValue resolved, ResolveValue(value));
    result.Set(name, std::move(resolved));
  }
  return result;
}

absl::StatusOr<int64_t> EvaluateDim(const Dim& dim) {
  CLEAVE_ASSIGN_OR_RETURN(const Dim resolved, ResolveDim(dim));
  if (std::optional<int64_t> value = resolved.Value()) return *value;
  return absl::FailedPreconditionError(absl::StrCat(
      "`", dim.ToString(), "` is no number here: ", resolved.ToString(),
      " has variables"));
}

}  // namespace cleave::functional
