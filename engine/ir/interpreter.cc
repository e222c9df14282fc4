#include "engine/ir/interpreter.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter_runner.h"
#include "engine/ir/interpreter_values.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using internal_interpreter::Bind;
using internal_interpreter::RealValues;
using internal_interpreter::ReferenceValues;
using internal_interpreter::RunGraph;

// Types of concrete extents, in the place of tensors.
struct TypeValues {
  using TensorT = TensorType;
  static DType DTypeOf(const TensorType& type) { return type.dtype; }
  static std::vector<int64_t> ShapeOf(const TensorType& type) {
    std::vector<int64_t> shape;
    for (const Dim& extent : type.shape) {
      CLEAVE_CHECK(extent.Value().has_value()) << type.ToString();
      shape.push_back(*extent.Value());
    }
    return shape;
  }
};

}  // namespace

absl::StatusOr<DimValues> BindDims(const Graph& graph,
                                   absl::Span<const Tensor> inputs) {
  DimValues values;
  CLEAVE_RETURN_IF_ERROR(Bind<ReferenceValues>(graph, inputs, &values));
  return values;
}

absl::StatusOr<DimValues> BindTypes(const Graph& graph,
                                    absl::Span<const TensorType> types) {
  for (const TensorType& type : types) {
    for (const Dim& extent : type.shape) {
      if (extent.IsConstant()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("an extent of ", type.ToString(), " is no number"));
    }
  }
  DimValues values;
  CLEAVE_RETURN_IF_ERROR(Bind<TypeValues>(graph, types, &values));
  return values;
}

absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph,
                                              absl::Span<const Tensor> inputs,
                                              const InterpretOptions& options) {
  for (const Tensor& input : inputs) CLEAVE_RETURN_IF_ERROR(input.status());
  return RunGraph(graph, inputs,
                  ReferenceValues{&options.host_kernels, options.regions},
                  options.dims);
}

absl::StatusOr<std::vector<RealTensor>> InterpretReal(
    const Graph& graph, absl::Span<const RealTensor> inputs, int bits) {
  return RunGraph(graph, inputs, RealValues{bits}, {});
}

}  // namespace cleave
