#include "ops/reference/eval_structured.h"

#include <algorithm>

#include "ops/budget.h"
#include "ops/infer_type.h"

namespace cleave {
namespace {

bool WithinLimit(const Extents& shape) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t extent : shape) {
    if (extent == 0) return true;
    overflow |= __builtin_mul_overflow(count, extent, &count);
  }
  return !overflow && count <= kMaxTensorElements;
}

// The types with numbers for extents.
absl::StatusOr<std::vector<ConcreteType>> WithExtents(
    Primitive primitive, absl::Span<const TensorType> results) {
  std::vector<ConcreteType> types;
  types.reserve(results.size());
  for (const TensorType& type : results) {
    ConcreteType& concrete = types.emplace_back();
    concrete.dtype = type.dtype;
    concrete.shape.reserve(type.shape.size());
    for (const Dim& dim : type.shape) {
      std::optional<int64_t> extent = dim.Value();
      // The count of a nonzero is known only afterwards.
      if (!extent && primitive == Primitive::kNonzero) extent = 0;
      if (!extent) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", PrimitiveName(primitive), "`: the extent ",
                         dim.ToString(), " is not known"));
      }
      concrete.shape.push_back(*extent);
    }
    if (!WithinLimit(concrete.shape)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "`", PrimitiveName(primitive), "`: a result of type ",
          type.ToString(), " exceeds ", kMaxTensorElements, " elements"));
    }
  }
  return types;
}

}  // namespace

absl::StatusOr<std::vector<ConcreteType>> ConcreteTypes(
    Primitive primitive, const Attributes& attributes,
    const OperandTypes& operands, absl::Span<const TensorType> declared) {
  if (!declared.empty()) return WithExtents(primitive, declared);
  std::vector<TensorType> types(operands.count);
  for (size_t i = 0; i < operands.count; ++i) {
    const Extents& shape = operands.shape(i);
    types[i].dtype = operands.dtype(i);
    types[i].shape.assign(shape.begin(), shape.end());
  }
  CLEAVE_ASSIGN_OR_RETURN(const InferredType inferred,
                          InferType(primitive, attributes, types));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<ConcreteType> results,
                          WithExtents(primitive, inferred.results));
  for (const ShapeGuard& guard : inferred.guards) {
    if (primitive == Primitive::kNonzero) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(guard.why, ": not known to hold"));
  }
  return results;
}

absl::Status CheckWorkingBytes(Primitive primitive,
                               const OperandTypes& operands,
                               absl::Span<const ConcreteType> results,
                               int64_t number) {
  // In double: what overflows an integer is beyond any limit.
  double bytes = 0;
  const auto count = [](const Extents& shape, size_t first) {
    double elements = 1;
    for (size_t d = first; d < shape.size(); ++d) {
      elements *= static_cast<double>(shape[d]);
    }
    return elements;
  };
  for (size_t i = 0; i < operands.count; ++i) {
    bytes += static_cast<double>(number) * count(operands.shape(i), 0);
  }
  for (const ConcreteType& result : results) {
    bytes +=
        static_cast<double>(number + sizeof(int64_t)) * count(result.shape, 0);
  }
  if (primitive == Primitive::kConv) {
    // Which elements of the input and of the kernel meet at each place.
    bytes += 2 * sizeof(int64_t) * count(operands.shape(1), 2) *
             count(results[0].shape, 2);
  }
  if (primitive == Primitive::kNonzero) {
    bytes += 2 * sizeof(int64_t) *
             static_cast<double>(operands.shape(0).size()) *
             count(operands.shape(0), 0);
  }
  constexpr double kMost = 1e18;
  return CheckTensorBytes(static_cast<int64_t>(std::min(bytes, kMost)));
}

bool IsStructured(Primitive primitive) {
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kWindow:
    case PrimitiveClass::kReduction:
    case PrimitiveClass::kContraction:
    case PrimitiveClass::kScan:
    case PrimitiveClass::kGather:
    case PrimitiveClass::kScatter:
    case PrimitiveClass::kSort:
    case PrimitiveClass::kDynamic:
      return true;
    default:
      return false;
  }
}

absl::Status CheckGather(const Attributes& attributes, const IndexMap& map) {
  if (attributes.Get("mode").AsString() != "error") return absl::OkStatus();
  for (const int64_t source : map) {
    if (source < 0) {
      return absl::OutOfRangeError("`gather`: an index is out of range");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNonzero(const Attributes& attributes, int64_t found) {
  const std::optional<int64_t> size = attributes.Get("size").AsDim().Value();
  if (!size || *size == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`nonzero`: `size` is ", *size,
                                                 ", but ", found,
                                                 " elements are not zero"));
}

}  // namespace cleave
