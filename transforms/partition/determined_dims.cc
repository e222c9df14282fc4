#include "transforms/partition/determined_dims.h"

#include <utility>

#include "absl/status/statusor.h"
#include "ops/dim.h"

namespace cleave::aot {
namespace {

// Whether `dim` is a * variable + rest, a not 0 and `rest` without the
// variable.
bool IsLinearIn(const Dim& dim, const std::string& variable) {
  const absl::StatusOr<Dim> at_0 = dim.CheckedSubstitute({{variable, Dim(0)}});
  const absl::StatusOr<Dim> at_1 = dim.CheckedSubstitute({{variable, Dim(1)}});
  if (!at_0.ok() || !at_1.ok()) return false;
  const absl::StatusOr<Dim> slope = Dim::CheckedSub(*at_1, *at_0);
  if (!slope.ok() || !slope->IsConstant() || *slope->Value() == 0) return false;
  const absl::StatusOr<Dim> part =
      Dim::CheckedMul(*slope, Dim::Variable(variable));
  if (!part.ok()) return false;
  const absl::StatusOr<Dim> line = Dim::CheckedAdd(*part, *at_0);
  return line.ok() && *line == dim;
}

}  // namespace

void DimVariables::AddNode(Value v) {
  const Node& node = graph_.node(v);
  if (types_.insert(node.type).second) {
    for (const TensorType& type : graph_.types(v)) AddType(type);
  }
  if (node.attributes != kNoAttributes &&
      attributes_.insert(node.attributes).second) {
    for (const auto& [name, value] : graph_.attributes(v).values()) {
      AddValue(value);
    }
  }
}

void DimVariables::AddType(const TensorType& type) {
  for (const Dim& dim : type.shape) {
    if (!dim.IsConstant()) names_.merge(dim.Variables());
  }
}

void DimVariables::AddValue(const StaticValue& value) {
  switch (value.kind()) {
    case StaticValue::Kind::kInt:
      if (!value.AsDim().IsConstant()) names_.merge(value.AsDim().Variables());
      return;
    case StaticValue::Kind::kList:
      for (const StaticValue& element : value.AsList()) AddValue(element);
      return;
    case StaticValue::Kind::kRecord:
      for (const auto& [name, field] : value.AsRecord()) AddValue(field);
      return;
    case StaticValue::Kind::kRegion: {
      const Graph& region = *value.AsRegion().graph;
      DimVariables inside(region);
      for (uint32_t id = 0; id < region.size(); ++id) inside.AddNode(Value{id});
      names_.insert(inside.names().begin(), inside.names().end());
      return;
    }
    default:
      return;
  }
}

std::set<std::string> DimsOfInputs(const Graph& graph, int count) {
  DimVariables variables(graph);
  for (int i = 0; i < count; ++i) variables.AddNode(graph.inputs()[i].value);
  return variables.names();
}

std::set<std::string> DeterminedDims(const std::vector<TensorType>& types) {
  std::vector<Dim> open;
  for (const TensorType& type : types) {
    for (const Dim& dim : type.shape) {
      if (!dim.IsConstant()) open.push_back(dim);
    }
  }
  std::set<std::string> determined;
  bool progress = true;
  while (progress) {
    progress = false;
    std::vector<Dim> left;
    for (Dim& dim : open) {
      std::set<std::string> unknown = dim.Variables();
      for (const std::string& name : determined) unknown.erase(name);
      if (unknown.size() == 1 && IsLinearIn(dim, *unknown.begin())) {
        determined.insert(*unknown.begin());
        progress = true;
      } else if (!unknown.empty()) {
        left.push_back(std::move(dim));
      }
    }
    open = std::move(left);
  }
  return determined;
}

}  // namespace cleave::aot
