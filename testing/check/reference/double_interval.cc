#include "testing/check/reference/double_interval.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/check/reference/double_interval_functions.h"

namespace cleave {
namespace {

// A constant, which no double may be.
DoubleInterval OfExact(const Exact& value) {
  const double nearest = value.ToDouble();
  if (std::isnan(nearest) || !value.IsFinite() ||
      Exact::FromDouble(nearest) == value) {
    return DoubleInterval::Of(nearest);
  }
  return {std::nextafter(nearest, -HUGE_VAL),
          std::nextafter(nearest, HUGE_VAL)};
}

absl::StatusOr<DoubleInterval> OfConstant(const Graph& graph, Value node) {
  const StaticValue& value = graph.attributes(node).Get("value");
  switch (value.kind()) {
    case StaticValue::Kind::kBool:
      return DoubleInterval::Bool(value.AsBool());
    case StaticValue::Kind::kInt:
    case StaticValue::Kind::kReal: {
      const Exact number = value.kind() == StaticValue::Kind::kInt
                               ? Exact(*value.AsDim().Value())
                               : value.AsReal();
      return graph.type(node).dtype == DType::kBool
                 ? DoubleInterval::Bool(number != Exact())
                 : OfExact(number);
    }
    default:
      return absl::UnimplementedError("a constant of another kind");
  }
}

bool IsEnclosed(DType dtype) { return dtype == DType::kBool || IsFloat(dtype); }

// A primitive with operands.
bool IsEnclosed(Primitive primitive) {
  return primitive == Primitive::kSelect || primitive == Primitive::kFma ||
         IntervalUnaryOf(primitive) != nullptr ||
         IntervalBinaryOf(primitive) != nullptr;
}

}  // namespace

absl::StatusOr<DoubleIntervalGraph> DoubleIntervalGraph::Make(
    const Graph& graph, Gaps gaps) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value node{id};
    const OpId op = graph.node(node).op;
    const auto refuse = [&](absl::string_view what) {
      return absl::UnimplementedError(
          absl::StrCat("no interval of f64 encloses `", what, "`"));
    };
    if (!IsPrimitive(op)) return refuse("a call");
    const Primitive primitive = ToPrimitive(op);
    const absl::string_view name = PrimitiveName(primitive);
    if (graph.types(node).size() != 1 || !IsEnclosed(graph.type(node).dtype)) {
      return refuse(name);
    }
    const absl::Span<const Value> operands = graph.operands(node);
    switch (primitive) {
      case Primitive::kInput:
      case Primitive::kBroadcastInDim:
      case Primitive::kSelect:
      case Primitive::kFma:
        continue;
      case Primitive::kConstant:
        CLEAVE_RETURN_IF_ERROR(OfConstant(graph, node).status());
        continue;
      case Primitive::kConvert:
        // Among floats it is the identity over the reals.
        if (!IsFloat(graph.type(node).dtype) ||
            !IsFloat(graph.type(operands[0]).dtype)) {
          return refuse(name);
        }
        continue;
      default:
        break;
    }
    if (operands.size() == 1 && IntervalUnaryOf(primitive) != nullptr) continue;
    if (operands.size() == 2 && IntervalBinaryOf(primitive) != nullptr) {
      continue;
    }
    if (gaps == Gaps::kUnknown &&
        ClassOf(primitive) == PrimitiveClass::kPointwise) {
      continue;
    }
    return refuse(name);
  }
  DoubleIntervalGraph result;
  result.graph_ = graph;
  return result;
}

std::vector<std::vector<DoubleInterval>> DoubleIntervalGraph::Evaluate(
    absl::Span<const std::vector<DoubleInterval>> inputs) const {
  const size_t size = inputs.empty() ? 1 : inputs[0].size();
  // A value that depends on no input is one interval.
  std::vector<std::vector<DoubleInterval>> values(graph_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[graph_.inputs()[i].value.id] = inputs[i];
  }
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Value node{id};
    std::vector<DoubleInterval>& out = values[id];
    const Primitive primitive = ToPrimitive(graph_.node(node).op);
    if (primitive == Primitive::kInput) continue;
    if (primitive == Primitive::kConstant) {
      out = {*OfConstant(graph_, node)};
      continue;
    }
    const absl::Span<const Value> operands = graph_.operands(node);
    size_t count = 1;
    for (const Value operand : operands) {
      if (values[operand.id].size() > 1) count = size;
    }
    const auto at = [&](int operand, size_t i) -> const DoubleInterval& {
      const std::vector<DoubleInterval>& value = values[operands[operand].id];
      return value[value.size() == 1 ? 0 : i];
    };
    out.resize(count);
    const bool scales = TakesScales(primitive);
    if (primitive == Primitive::kConvert ||
        primitive == Primitive::kBroadcastInDim) {
      out = values[operands[0].id];
    } else if (!IsEnclosed(primitive)) {
      out.assign(count, DoubleInterval::Unknown());
    } else if (operands.size() == 3) {
      const auto function =
          primitive == Primitive::kSelect ? IntervalSelect : IntervalFma;
      for (size_t i = 0; i < count; ++i) {
        out[i] = function(at(0, i), at(1, i), at(2, i));
      }
    } else if (operands.size() == 2) {
      const IntervalBinary function = IntervalBinaryOf(primitive);
      for (size_t i = 0; i < count; ++i) {
        out[i] = scales ? function(at(0, i), at(1, i))
                        : function(Plain(at(0, i)), Plain(at(1, i)));
      }
    } else {
      const IntervalUnary function = IntervalUnaryOf(primitive);
      for (size_t i = 0; i < count; ++i) {
        out[i] = function(scales ? at(0, i) : Plain(at(0, i)));
      }
    }
  }
  std::vector<std::vector<DoubleInterval>> outputs;
  for (const NamedValue& output : graph_.outputs()) {
    outputs.push_back(values[output.value.id]);
    for (DoubleInterval& value : outputs.back()) value = Plain(value);
    if (outputs.back().size() == 1) {
      outputs.back().resize(size, outputs.back()[0]);
    }
  }
  return outputs;
}

}  // namespace cleave
