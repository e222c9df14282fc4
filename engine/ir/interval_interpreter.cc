#include "engine/ir/interval_interpreter.h"

#include <cstdint>

#include "engine/ir/interpreter_runner.h"
#include "engine/ir/interpreter_values.h"

namespace cleave {
namespace {

struct IntervalKind {
  using TensorT = IntervalTensor;
  using Number = RealInterval;
  static constexpr std::vector<RealInterval> IntervalTensor::*kNumbers =
      &IntervalTensor::intervals;
  static int64_t BytesOf(int bits) { return 128 + bits / 4; }
  static absl::StatusOr<std::vector<IntervalTensor>> Eval(
      Primitive primitive, const Attributes& attributes,
      absl::Span<const IntervalTensor> operands, int bits,
      absl::Span<const TensorType> declared) {
    return EvalInterval(primitive, attributes, operands, bits, declared);
  }
};

}  // namespace

absl::StatusOr<std::vector<IntervalTensor>> InterpretInterval(
    const Graph& graph, absl::Span<const IntervalTensor> inputs, int bits) {
  return internal_interpreter::RunGraph(
      graph, inputs, internal_interpreter::NumberValues<IntervalKind>{bits},
      {});
}

}  // namespace cleave
