// Evaluation of the structured primitives over any storage: the kernels of
// ops/reference/structured_kernels.h applied to whole operands. Internal to
// ops.

#ifndef CLEAVE_OPS_REFERENCE_EVAL_STRUCTURED_H_
#define CLEAVE_OPS_REFERENCE_EVAL_STRUCTURED_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/reference/structured_kernels.h"
#include "ops/status_macros.h"

namespace cleave {

// The concrete shape of each result of `primitive` (nonzero: of its largest),
// with the dtype: what InferType says with every extent known.
struct ConcreteType {
  DType dtype;
  Extents shape;
};

// Operands in their order: how many, and the dtype and shape of each.
struct OperandTypes {
  size_t count;
  absl::FunctionRef<DType(size_t)> dtype;
  absl::FunctionRef<const Extents&(size_t)> shape;
};

// By InferType, or from `declared` unless that is empty: the types, with
// constant extents, that InferType gave for such operands before. Then nothing
// is inferred, which takes longer than most kernels on a few elements.
// InvalidArgument as InferType, and where an extent is not constant;
// ResourceExhausted beyond kMaxTensorElements.
absl::StatusOr<std::vector<ConcreteType>> ConcreteTypes(
    Primitive primitive, const Attributes& attributes,
    const OperandTypes& operands, absl::Span<const TensorType> declared);

// ResourceExhausted where the budget has no room for what the kernel of
// `primitive` makes: the results and, beside them, its operands as numbers of 8
// or 16 bytes, and maps of indices. `number` is the size of one number.
absl::Status CheckWorkingBytes(Primitive primitive,
                               const OperandTypes& operands,
                               absl::Span<const ConcreteType> results,
                               int64_t number);

// Whether the primitive's class is evaluated here.
bool IsStructured(Primitive primitive);

// OutOfRange if a gather of mode "error" reads outside of x.
absl::Status CheckGather(const Attributes& attributes, const IndexMap& map);

// InvalidArgument unless `found` rows are what the attribute `size` says, if it
// is constant.
absl::Status CheckNonzero(const Attributes& attributes, int64_t found);

inline const Tensor& DiscreteOf(const Tensor& tensor) { return tensor; }
inline Tensor FromDiscrete(const Tensor& tensor, const Tensor&) {
  return tensor;
}

// One result. A list in braces would copy all of its numbers.
template <typename Storage>
std::vector<Storage> Alone(Storage result) {
  std::vector<Storage> results;
  results.push_back(std::move(result));
  return results;
}

// Index maps need no arithmetic.
template <typename Storage>
absl::StatusOr<Storage> EvalGather(const Attributes& attributes,
                                   absl::Span<const Storage> operands,
                                   const Extents& result) {
  IndexMap map =
      MapOfIndexing(ShapeOf(operands[0]), ShapeOf(operands[1]),
                    LoadInts(DiscreteOf(operands[1])),
                    attributes.GetInts("axes"), attributes.GetInt("batch"));
  CLEAVE_RETURN_IF_ERROR(CheckGather(attributes, map));
  const int64_t fill = SizeOf(operands[0]);
  for (int64_t& source : map) {
    if (source < 0) source = fill;
  }
  const std::vector<Storage> sources = {operands[0], operands[2]};
  return Pick(map, result, absl::MakeConstSpan(sources));
}

// `a` is the arithmetic of operand 0. FromDiscrete wraps a Tensor of integers
// as the storage.
template <typename A>
absl::StatusOr<std::vector<typename A::Storage>> EvalStructured(
    const A& a, Primitive primitive, const Attributes& attributes,
    absl::Span<const typename A::Storage> operands,
    const std::vector<ConcreteType>& types) {
  using Storage = typename A::Storage;
  const Extents& result = types[0].shape;
  const PrimitiveClass primitive_class = ClassOf(primitive);
  if (primitive_class == PrimitiveClass::kMovement ||
      primitive == Primitive::kWindows) {
    std::vector<Extents> shapes;
    for (const Storage& operand : operands) shapes.push_back(ShapeOf(operand));
    return Alone(Pick(MapOfMovement(primitive, attributes, shapes, result),
                      result, operands));
  }
  if (primitive == Primitive::kGather) {
    CLEAVE_ASSIGN_OR_RETURN(Storage gathered,
                            EvalGather<Storage>(attributes, operands, result));
    return Alone(std::move(gathered));
  }
  const Extents& shape = ShapeOf(operands[0]);
  const auto x = a.Load(operands[0]);
  const auto one = [](Storage storage) { return Alone(std::move(storage)); };
  switch (primitive) {
    case Primitive::kReduceSum:
    case Primitive::kReduceProd:
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
    case Primitive::kReduceAll:
    case Primitive::kReduceAny:
      return one(
          a.Store(result, ReduceKernel(a, primitive, attributes, shape, x)));
    case Primitive::kDotGeneral:
      return one(a.Store(
          result,
          DotGeneralKernel(a, attributes, shape, x, ShapeOf(operands[1]),
                           a.Load(operands[1]), result)));
    case Primitive::kConv:
      return one(a.Store(
          result, ConvKernel(a, attributes, shape, x, ShapeOf(operands[1]),
                             a.Load(operands[1]), result)));
    case Primitive::kLinearScan:
      return one(a.Store(
          result, LinearScanKernel(a, attributes, shape, x, a.Load(operands[1]),
                                   a.Load(operands[2]))));
    case Primitive::kScatter: {
      const IndexMap map = MapOfIndexing(
          shape, ShapeOf(operands[1]), LoadInts(DiscreteOf(operands[1])),
          attributes.GetInts("axes"), attributes.GetInt("batch"));
      return one(
          a.Store(result, ScatterKernel(a, attributes.Get("mode").AsString(),
                                        map, x, a.Load(operands[2]))));
    }
    case Primitive::kWindowsAdd: {
      const IndexMap map = MapOfWindows(attributes, result);
      const std::vector<typename A::Value> zeros(CountOf(result), a.Zero());
      return one(a.Store(result, ScatterKernel(a, "add", map, zeros, x)));
    }
    case Primitive::kNonzero: {
      const std::vector<int64_t> rows = NonzeroKernel(a, shape, x);
      // A scalar has rows of length 0; only their number tells.
      const int64_t rank = static_cast<int64_t>(shape.size());
      const int64_t found = rank > 0 ? static_cast<int64_t>(rows.size()) / rank
                                     : (a.IsZero(x[0]) ? 0 : 1);
      CLEAVE_RETURN_IF_ERROR(CheckNonzero(attributes, found));
      return one(FromDiscrete(IntsTensor({found, rank}, rows), operands[0]));
    }
    default:
      break;
  }
  if constexpr (kIsOrdered<A>) {
    switch (primitive) {
      case Primitive::kArgmax:
      case Primitive::kArgmin:
        return one(FromDiscrete(
            IntsTensor(result, ArgKernel(a, primitive == Primitive::kArgmax,
                                         attributes.GetInts("axes"), shape, x)),
            operands[0]));
      case Primitive::kCumulativeMax:
      case Primitive::kCumulativeMin:
        return one(a.Store(
            result, CumulativeKernel(a, primitive == Primitive::kCumulativeMax,
                                     attributes, shape, x)));
      case Primitive::kSort: {
        const std::vector<int64_t> places = SortKernel(a, attributes, shape, x);
        const IndexMap map =
            MapOfSort(shape, attributes.GetInt("axis"), places);
        return std::vector<Storage>{
            Pick(map, shape, operands),
            FromDiscrete(IntsTensor(shape, places), operands[0])};
      }
      default:
        break;
    }
  }
  return absl::InternalError(
      absl::StrCat("`", PrimitiveName(primitive), "` has no kernel"));
}

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_EVAL_STRUCTURED_H_
