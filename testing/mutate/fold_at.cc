#include "testing/mutate/fold_at.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave {
namespace {

// Whether an element is one number, neither complex nor a random key.
bool IsReal(DType dtype) { return !IsComplex(dtype) && dtype != DType::kKey; }

// Where every element of the result is that of the operand: the mark of what
// has no derivative is no part of a number.
bool IsOfOneNumber(Primitive primitive) {
  return primitive == Primitive::kBroadcastInDim ||
         primitive == Primitive::kReshape ||
         primitive == Primitive::kTranspose || primitive == Primitive::kNograd;
}

// A value of the graph, folded: a value of the folded graph, or a number.
struct Folded {
  Value value;
  std::optional<Tensor> number;  // of no axes
};

class Folder {
 public:
  explicit Folder(const Graph& graph)
      : graph_(graph), builder_(graph.context()), folded_(graph.size()) {}

  absl::StatusOr<Graph> Run(const std::string& name, double number) {
    for (const NamedValue& input : graph_.inputs()) {
      const TensorType& type = graph_.type(input.value);
      Folded& folded = folded_[input.value.id];
      folded.value = builder_.Input(input.name, type);
      if (input.name == name) {
        folded.number = Tensor::Scalar(type.dtype, number);
      }
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value value{id};
      if (graph_.node(value).op == ToOpId(Primitive::kInput)) continue;
      CLEAVE_ASSIGN_OR_RETURN(folded_[id], Fold(value));
    }
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    std::vector<NamedValue> outputs;
    for (const NamedValue& output : graph_.outputs()) {
      outputs.push_back({output.name, Emitted(output.value)});
    }
    return std::move(builder_).Build(std::move(outputs));
  }

 private:
  absl::StatusOr<Folded> Fold(Value value) {
    const Node& node = graph_.node(value);
    const Primitive primitive = ToPrimitive(node.op);
    const auto operands = graph_.operands(value);
    if (IsOfOneNumber(primitive) && Number(operands[0])) {
      return folded_[operands[0].id];
    }
    if (primitive == Primitive::kSelect) {
      const std::optional<Tensor>& condition = Number(operands[0]);
      if (condition) {
        return folded_[operands[condition->GetInt(0) != 0 ? 1 : 2].id];
      }
    }
    if (IsOfNumbers(primitive, operands, graph_.type(value))) {
      std::vector<Tensor> numbers;
      for (const Value operand : operands) numbers.push_back(*Number(operand));
      CLEAVE_ASSIGN_OR_RETURN(
          std::vector<Tensor> results,
          EvalReference(primitive, graph_.attributes(value), numbers));
      return Folded{{}, std::move(results[0])};
    }
    if (std::optional<Tensor> number = OfNaN(value)) {
      return Folded{{}, std::move(number)};
    }
    std::vector<Value> taken;
    for (const Value operand : operands) taken.push_back(Emitted(operand));
    return Folded{builder_.AddTyped(node.op, node.attributes, node.type, taken,
                                    node.provenance),
                  std::nullopt};
  }

  // The value of a pointwise primitive of a NaN, whatever its other operands
  // are; nullopt where no operand is a NaN, or they matter: pow(1, nan) is 1.
  std::optional<Tensor> OfNaN(Value value) {
    const auto operands = graph_.operands(value);
    const bool is_nan =
        std::any_of(operands.begin(), operands.end(), [&](Value operand) {
          const std::optional<Tensor>& number = Number(operand);
          return number && IsFloat(number->dtype()) &&
                 std::isnan(number->GetDouble(0));
        });
    if (!is_nan) return std::nullopt;
    const Primitive primitive = ToPrimitive(graph_.node(value).op);
    if (IsComparison(primitive)) {
      return Tensor::Scalar(DType::kBool, primitive == Primitive::kNe ? 1 : 0);
    }
    switch (primitive) {
      case Primitive::kAdd:
      case Primitive::kSub:
      case Primitive::kMul:
      case Primitive::kDiv:
      case Primitive::kFma:
      case Primitive::kMax:
      case Primitive::kMin:
        return Tensor::Scalar(graph_.type(value).dtype, std::nan(""));
      default:
        return std::nullopt;
    }
  }

  bool IsOfNumbers(Primitive primitive, absl::Span<const Value> operands,
                   const TensorType& type) {
    if (!IsReal(type.dtype)) return false;
    if (primitive == Primitive::kConstant) return true;
    if (ClassOf(primitive) != PrimitiveClass::kPointwise || operands.empty()) {
      return false;
    }
    for (const Value operand : operands) {
      if (!Number(operand)) return false;
    }
    return true;
  }

  const std::optional<Tensor>& Number(Value value) const {
    return folded_[value.id].number;
  }

  // The value in the folded graph, of the type that it had.
  Value Emitted(Value value) {
    const std::optional<Tensor>& number = Number(value);
    if (!number) return folded_[value.id].value;
    const TensorType& type = graph_.type(value);
    if (!IsFloat(type.dtype)) {
      return builder_.Constant(Exact(number->GetInt(0)), type);
    }
    return builder_.Constant(Exact::FromDouble(number->GetDouble(0)), type);
  }

  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<Folded> folded_;
};

}  // namespace

absl::StatusOr<Graph> FoldAt(const Graph& graph, const std::string& name,
                             double number) {
  return Folder(graph).Run(name, number);
}

}  // namespace cleave
