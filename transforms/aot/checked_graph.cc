#include "transforms/aot/checked_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

// Whether `dim` is one variable and nothing else.
bool IsVariable(const Dim& dim) {
  if (dim.IsConstant()) return false;
  const std::set<std::string> variables = dim.Variables();
  return variables.size() == 1 && dim.ToString() == *variables.begin();
}

bool AreKnown(const Dim& dim, const DimValues& values) {
  for (const std::string& name : dim.Variables()) {
    if (values.count(name) == 0) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckKnownGuards(absl::Span<const ShapeGuard> guards,
                              const DimValues& values) {
  for (const ShapeGuard& guard : guards) {
    if (!AreKnown(guard.lhs, values) || !AreKnown(guard.rhs, values)) continue;
    CLEAVE_RETURN_IF_ERROR(CheckGuard(guard, values));
  }
  return absl::OkStatus();
}

int CheckedGraph::VariableNumber(const std::string& name) {
  const auto at = std::find_if(
      variables_.begin(), variables_.end(),
      [&](const Variable& variable) { return variable.name == name; });
  if (at != variables_.end()) return static_cast<int>(at - variables_.begin());
  variables_.emplace_back().name = name;
  return static_cast<int>(variables_.size()) - 1;
}

absl::StatusOr<CheckedGraph> CheckedGraph::Make(const Graph& graph, Half half,
                                                CompiledGraph compiled) {
  if (compiled == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the compiler of the ", HalfName(half), " graph gives no function"));
  }
  CheckedGraph made;
  made.half_ = half;
  made.compiled_ = std::move(compiled);
  for (const NamedValue& value : graph.outputs()) {
    Output output;
    output.name = value.name;
    output.type = graph.type(value.value);
    for (const Dim& dim : output.type.shape) {
      Extent extent;
      if (dim.IsConstant()) {
        extent.number = dim.Value().value_or(-1);
      } else if (IsVariable(dim)) {
        extent.variable = made.VariableNumber(dim.ToString());
      } else {
        extent.variable = kExpression;
        for (const std::string& name : dim.Variables()) {
          made.VariableNumber(name);
        }
      }
      output.extents.push_back(extent);
    }
    made.outputs_.push_back(std::move(output));
  }
  if (made.variables_.empty()) return made;
  std::set<std::string> in_inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    made.inputs_.push_back(graph.type(graph.inputs()[i].value));
    const Shape& shape = made.inputs_.back().shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].IsConstant()) continue;
      in_inputs.merge(shape[d].Variables());
      if (!IsVariable(shape[d])) continue;
      Variable& variable =
          made.variables_[made.VariableNumber(shape[d].ToString())];
      if (variable.input >= 0) continue;
      variable.input = static_cast<int>(i);
      variable.axis = static_cast<int>(d);
    }
  }
  for (const Variable& variable : made.variables_) {
    made.solve_ |= variable.input < 0 && in_inputs.count(variable.name) > 0;
  }
  return made;
}

absl::Status CheckedGraph::ReadVariables(absl::Span<const Tensor> inputs,
                                         Numbers* numbers) const {
  numbers->assign(variables_.size(), -1);
  if (variables_.empty()) return absl::OkStatus();
  if (inputs.size() != inputs_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " tensors for the ", inputs_.size(),
                     " inputs of the ", HalfName(half_), " graph"));
  }
  if (!solve_) {
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Variable& variable = variables_[i];
      if (variable.input < 0) continue;
      const std::vector<int64_t>& shape = inputs[variable.input].shape();
      if (variable.axis >= static_cast<int>(shape.size())) {
        return absl::InvalidArgumentError(
            absl::StrCat("input ", variable.input, " of the ", HalfName(half_),
                         " graph is of rank ", shape.size(), ", not ",
                         inputs_[variable.input].rank()));
      }
      (*numbers)[i] = shape[variable.axis];
    }
    return absl::OkStatus();
  }
  std::vector<DimEquation> equations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs_[i].shape;
    if (inputs[i].shape().size() != shape.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, " of the ", HalfName(half_), " graph is ",
          inputs[i].type().ToString(), ", not ", inputs_[i].ToString()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back({shape[d], inputs[i].shape()[d],
                           absl::StrCat("axis ", d, " of input ", i)});
    }
  }
  DimValues values;
  CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(equations), &values));
  for (size_t i = 0; i < variables_.size(); ++i) {
    const auto known = values.find(variables_[i].name);
    if (known != values.end()) (*numbers)[i] = known->second;
  }
  return absl::OkStatus();
}

DimValues CheckedGraph::ValuesOf(const Numbers& numbers) const {
  DimValues values;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0) values.emplace(variables_[i].name, numbers[i]);
  }
  return values;
}

absl::Status CheckedGraph::Wrong(const Output& output, const Tensor& tensor,
                                 const Numbers& numbers) const {
  TensorType type = output.type;
  const DimValues values = ValuesOf(numbers);
  for (Dim& dim : type.shape) {
    if (!AreKnown(dim, values)) continue;
    CLEAVE_ASSIGN_OR_RETURN(const int64_t number, dim.Evaluate(values));
    dim = Dim(number);
  }
  std::string wanted = type.ToString();
  if (type != output.type) {
    absl::StrAppend(&wanted, " (", output.type.ToString(), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the compiled ", HalfName(half_), " graph gives output `", output.name,
      "` as ", tensor.type().ToString(), ", not ", wanted));
}

absl::Status CheckedGraph::CheckOutput(const Output& output,
                                       const Tensor& tensor,
                                       Numbers* numbers) const {
  const std::vector<int64_t>& shape = tensor.shape();
  if (tensor.dtype() != output.type.dtype ||
      shape.size() != output.extents.size()) {
    return Wrong(output, tensor, *numbers);
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    const Extent& extent = output.extents[d];
    int64_t wanted = extent.number;
    if (extent.variable == kExpression) {
      const DimValues values = ValuesOf(*numbers);
      if (!AreKnown(output.type.shape[d], values)) continue;
      CLEAVE_ASSIGN_OR_RETURN(wanted, output.type.shape[d].Evaluate(values));
    } else if (extent.variable != kNumber) {
      // A size that only the values tell: the same wherever it stands.
      int64_t& known = (*numbers)[extent.variable];
      if (known < 0) known = shape[d];
      wanted = known;
    }
    if (shape[d] != wanted) return Wrong(output, tensor, *numbers);
  }
  if (tensor.data() == nullptr && tensor.size() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the compiled ", HalfName(half_), " graph gives output `", output.name,
        "` as ", tensor.type().ToString(), " without its data"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> CheckedGraph::operator()(
    absl::Span<const Tensor> inputs) const {
  Numbers numbers;
  CLEAVE_RETURN_IF_ERROR(ReadVariables(inputs, &numbers));
  absl::StatusOr<std::vector<Tensor>> results = compiled_(inputs);
  if (!results.ok()) return results;
  if (results->size() != outputs_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the compiled ", HalfName(half_), " graph gives ",
                     results->size(), " tensors, not ", outputs_.size()));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(CheckOutput(outputs_[i], (*results)[i], &numbers));
  }
  return results;
}

}  // namespace cleave::aot
