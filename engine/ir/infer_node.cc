#include "engine/ir/infer_node.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

absl::Status Misfit(absl::string_view primitive, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("`", primitive, "`: ", what));
}

// The attribute `name`, which must be of `kind`.
absl::StatusOr<const StaticValue*> Find(const Attributes& attributes,
                                        absl::string_view primitive,
                                        absl::string_view name,
                                        StaticValue::Kind kind) {
  const StaticValue* value = attributes.Find(name);
  if (value == nullptr) {
    return Misfit(primitive,
                  absl::StrCat("the attribute `", name, "` is missing"));
  }
  if (value->kind() != kind) {
    return Misfit(primitive, absl::StrCat("the attribute `", name,
                                          "` is of another kind than it "
                                          "must be: ",
                                          value->ToString()));
  }
  return value;
}

absl::StatusOr<int64_t> FindInt(const Attributes& attributes,
                                absl::string_view primitive,
                                absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(
      const StaticValue* value,
      Find(attributes, primitive, name, StaticValue::Kind::kInt));
  return value->ToInt();
}

absl::StatusOr<const Graph*> FindRegion(const Attributes& attributes,
                                        absl::string_view primitive,
                                        absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(
      const StaticValue* value,
      Find(attributes, primitive, name, StaticValue::Kind::kRegion));
  const Graph* graph = value->AsRegion().graph.get();
  if (graph == nullptr || graph->context() == nullptr) {
    return Misfit(primitive, absl::StrCat("the region `", name, "` is empty"));
  }
  return graph;
}

absl::Status RefuseOthers(const Attributes& attributes, Primitive primitive) {
  for (const auto& [name, value] : attributes.values()) {
    if (FindAttribute(primitive, name) != nullptr) continue;
    return Misfit(PrimitiveName(primitive),
                  absl::StrCat("there is no attribute `", name, "`"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorType> OutputType(const Graph& region,
                                      absl::string_view primitive, int index) {
  const NamedValue& output = region.outputs()[index];
  if (region.types(output.value).size() != 1) {
    return Misfit(primitive, absl::StrCat("the region's output `", output.name,
                                          "` is a tuple"));
  }
  return region.type(output.value);
}

absl::Status CheckInput(const Graph& region, absl::string_view primitive,
                        size_t index, const TensorType& type) {
  const NamedValue& input = region.inputs()[index];
  if (region.type(input.value) == type) return absl::OkStatus();
  return Misfit(primitive,
                absl::StrCat("the region's input `", input.name, "` is ",
                             region.type(input.value).ToString(),
                             ", but it is given ", type.ToString()));
}

absl::StatusOr<InferredType> InferResult(const Context& context,
                                         const Attributes& attributes,
                                         absl::Span<const TypeId> operands) {
  if (operands.size() != 1) {
    return Misfit("result",
                  absl::StrCat("takes 1 operand, not ", operands.size()));
  }
  CLEAVE_RETURN_IF_ERROR(RefuseOthers(attributes, Primitive::kResult));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t index,
                          FindInt(attributes, "result", "index"));
  const std::vector<TensorType>& types = context.types(operands[0]);
  if (index < 0 || index >= static_cast<int64_t>(types.size())) {
    return Misfit("result", absl::StrCat("the index ", index,
                                         " is out of range: the operand has ",
                                         types.size(), " results"));
  }
  return InferredType{{types[index]}, {}};
}

absl::StatusOr<InferredType> InferScan(const Attributes& attributes,
                                       absl::Span<const TensorType> operands) {
  CLEAVE_RETURN_IF_ERROR(RefuseOthers(attributes, Primitive::kScan));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body,
                          FindRegion(attributes, "scan", "body"));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t consts,
                          FindInt(attributes, "scan", "consts"));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t carries,
                          FindInt(attributes, "scan", "carries"));
  CLEAVE_ASSIGN_OR_RETURN(
      const StaticValue* length_value,
      Find(attributes, "scan", "length", StaticValue::Kind::kInt));
  CLEAVE_RETURN_IF_ERROR(
      Find(attributes, "scan", "reverse", StaticValue::Kind::kBool).status());
  const Dim& length = length_value->AsDim();

  const int64_t count = static_cast<int64_t>(operands.size());
  if (consts < 0 || carries < 0 || consts > count || carries > count - consts) {
    return Misfit("scan", absl::StrCat(consts, " consts and ", carries,
                                       " carries of ", count, " operands"));
  }
  if (static_cast<int64_t>(body->inputs().size()) != count) {
    return Misfit("scan",
                  absl::StrCat("the body takes ", body->inputs().size(),
                               " inputs, but there are ", count, " operands"));
  }
  const int64_t results = static_cast<int64_t>(body->outputs().size());
  if (results < carries || results == 0) {
    return Misfit("scan", absl::StrCat("the body gives ", results,
                                       " results for ", carries, " carries"));
  }

  InferredType inferred;
  for (int64_t i = 0; i < count; ++i) {
    TensorType type = operands[i];
    if (i >= consts + carries) {  // a slice
      if (type.rank() == 0) {
        return Misfit("scan",
                      absl::StrCat("operand ", i, " has no axis to scan over"));
      }
      if (Compare(type.shape[0], CompareOp::kEq, length) == Truth::kFalse) {
        return Misfit("scan", absl::StrCat("operand ", i, " has ",
                                           type.shape[0].ToString(),
                                           " slices, not ", length.ToString()));
      }
      if (type.shape[0] != length) {
        inferred.guards.push_back({type.shape[0], CompareOp::kEq, length,
                                   "scan: all operands have `length` slices"});
      }
      type.shape.erase(type.shape.begin());
    }
    CLEAVE_RETURN_IF_ERROR(CheckInput(*body, "scan", i, type));
  }
  for (int64_t i = 0; i < results; ++i) {
    CLEAVE_ASSIGN_OR_RETURN(TensorType type, OutputType(*body, "scan", i));
    if (i < carries) {
      if (type != operands[consts + i]) {
        return Misfit("scan",
                      absl::StrCat("the carry `", body->outputs()[i].name,
                                   "` is ", operands[consts + i].ToString(),
                                   ", but the body gives ", type.ToString()));
      }
    } else {
      type.shape.insert(type.shape.begin(), length);
    }
    inferred.results.push_back(std::move(type));
  }
  return inferred;
}

absl::StatusOr<InferredType> InferCond(const Attributes& attributes,
                                       absl::Span<const TensorType> operands) {
  CLEAVE_RETURN_IF_ERROR(RefuseOthers(attributes, Primitive::kCond));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* then_region,
                          FindRegion(attributes, "cond", "then"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* else_region,
                          FindRegion(attributes, "cond", "else"));
  if (operands.empty() || operands[0] != TensorType{DType::kBool, {}}) {
    return Misfit("cond",
                  absl::StrCat("operand 0 must be bool[], not ",
                               operands.empty() ? std::string("absent")
                                                : operands[0].ToString()));
  }
  for (const Graph* region : {then_region, else_region}) {
    if (region->inputs().size() != operands.size() - 1) {
      return Misfit("cond",
                    absl::StrCat("a region takes ", region->inputs().size(),
                                 " inputs, but there are ", operands.size() - 1,
                                 " operands"));
    }
    for (size_t i = 1; i < operands.size(); ++i) {
      CLEAVE_RETURN_IF_ERROR(CheckInput(*region, "cond", i - 1, operands[i]));
    }
  }
  if (then_region->outputs().size() != else_region->outputs().size() ||
      then_region->outputs().empty()) {
    return Misfit(
        "cond",
        absl::StrCat("the regions give ", then_region->outputs().size(),
                     " and ", else_region->outputs().size(), " results"));
  }
  InferredType inferred;
  for (size_t i = 0; i < then_region->outputs().size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(TensorType type,
                            OutputType(*then_region, "cond", i));
    CLEAVE_ASSIGN_OR_RETURN(const TensorType other,
                            OutputType(*else_region, "cond", i));
    if (type != other) {
      return Misfit("cond", absl::StrCat("result ", i, " is ", type.ToString(),
                                         " in one region and ",
                                         other.ToString(), " in the other"));
    }
    inferred.results.push_back(std::move(type));
  }
  return inferred;
}

absl::StatusOr<InferredType> InferWhile(const Attributes& attributes,
                                        absl::Span<const TensorType> operands) {
  CLEAVE_RETURN_IF_ERROR(RefuseOthers(attributes, Primitive::kWhile));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* condition,
                          FindRegion(attributes, "while", "cond"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body,
                          FindRegion(attributes, "while", "body"));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t consts,
                          FindInt(attributes, "while", "consts"));
  InferredType inferred;
  if (attributes.Find("max") != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(
        const StaticValue* max,
        Find(attributes, "while", "max", StaticValue::Kind::kInt));
    const Dim& bound = max->AsDim();
    const Truth holds = Compare(bound, CompareOp::kGe, Dim(0));
    if (holds == Truth::kFalse) {
      return Misfit("while", absl::StrCat("the attribute `max` is ",
                                          bound.ToString(), ", below 0"));
    }
    if (holds == Truth::kUnknown) {
      inferred.guards.push_back(
          {bound, CompareOp::kGe, Dim(0), "while: `max` is at least 0"});
    }
  }
  const int64_t count = static_cast<int64_t>(operands.size());
  if (consts < 0 || consts >= count) {
    return Misfit("while", absl::StrCat(consts, " consts of ", count,
                                        " operands leave no carry"));
  }
  for (const Graph* region : {condition, body}) {
    if (static_cast<int64_t>(region->inputs().size()) != count) {
      return Misfit(
          "while", absl::StrCat("a region takes ", region->inputs().size(),
                                " inputs, but there are ", count, " operands"));
    }
    for (int64_t i = 0; i < count; ++i) {
      CLEAVE_RETURN_IF_ERROR(CheckInput(*region, "while", i, operands[i]));
    }
  }
  if (condition->outputs().size() != 1) {
    return Misfit("while",
                  absl::StrCat("`cond` gives ", condition->outputs().size(),
                               " results, not one bool[]"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const TensorType predicate,
                          OutputType(*condition, "while", 0));
  if (predicate != TensorType{DType::kBool, {}}) {
    return Misfit("while", absl::StrCat("`cond` gives ", predicate.ToString(),
                                        ", not bool[]"));
  }
  if (static_cast<int64_t>(body->outputs().size()) != count - consts) {
    return Misfit("while",
                  absl::StrCat("the body gives ", body->outputs().size(),
                               " results for ", count - consts, " carries"));
  }
  for (int64_t i = consts; i < count; ++i) {
    const int result = static_cast<int>(i - consts);
    CLEAVE_ASSIGN_OR_RETURN(TensorType type,
                            OutputType(*body, "while", result));
    if (type != operands[i]) {
      return Misfit("while",
                    absl::StrCat("the carry `", body->outputs()[result].name,
                                 "` is ", operands[i].ToString(),
                                 ", but the body gives ", type.ToString()));
    }
    inferred.results.push_back(std::move(type));
  }
  return inferred;
}

}  // namespace

absl::StatusOr<InferredType> InferNode(const Context& context,
                                       Primitive primitive,
                                       const Attributes& attributes,
                                       absl::Span<const TypeId> operands) {
  if (primitive == Primitive::kInput) {
    return Misfit("input", "its type is declared, not inferred");
  }
  if (primitive == Primitive::kResult) {
    return InferResult(context, attributes, operands);
  }
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::vector<TensorType>& type = context.types(operands[i]);
    if (type.size() != 1) {
      return Misfit(
          PrimitiveName(primitive),
          absl::StrCat("operand ", i, " is a tuple; take one of its results"));
    }
    types.push_back(type.front());
  }
  if (primitive == Primitive::kScan) return InferScan(attributes, types);
  if (primitive == Primitive::kCond) return InferCond(attributes, types);
  if (primitive == Primitive::kWhile) return InferWhile(attributes, types);
  return InferType(primitive, attributes, types);
}

}  // namespace cleave
