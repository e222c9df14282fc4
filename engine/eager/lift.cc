#include "engine/eager/lift.h"

#include <memory>
#include <optional>

#include "engine/eager/call.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor_access.h"
#include "ops/exact.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

// The number of a Dim at what is bound; an extent of a trace is none.
absl::StatusOr<TracedValue> TracedNumber(const Tensor& x) {
  CLEAVE_ASSIGN_OR_RETURN(const Exact number, TensorAccess::NumberOf(x));
  return TracedValue(number);
}

absl::StatusOr<std::vector<Tensor>> CallTracedIn(
    Recorder& recorder, const TracedFunction& fn,
    const std::vector<Tensor>& arguments) {
  if (fn == nullptr) {
    return absl::InvalidArgumentError("there is no function to lift");
  }
  std::vector<TensorType> types;
  std::vector<Tensor> inputs;
  std::vector<std::optional<TracedValue>> numbers;
  for (const Tensor& x : arguments) {
    CLEAVE_RETURN_IF_ERROR(x.status());
    if (x.is_number()) {
      CLEAVE_ASSIGN_OR_RETURN(TracedValue number, TracedNumber(x));
      numbers.push_back(std::move(number));
      continue;
    }
    numbers.push_back(std::nullopt);
    types.push_back(x.type());
    inputs.push_back(x);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph graph,
      TraceFunction(
          recorder.builder().context(),
          [&](const std::vector<TracedValue>& values) {
            std::vector<TracedValue> all;
            size_t next = 0;
            for (const std::optional<TracedValue>& number : numbers) {
              all.push_back(number.has_value() ? *number : values[next++]);
            }
            return fn(all);
          },
          types));
  return CallGraph(graph, inputs);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> CallTraced(
    const TracedFunction& fn, const std::vector<Tensor>& arguments) {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                          CurrentRecorder());
  absl::StatusOr<std::vector<Tensor>> results =
      CallTracedIn(*recorder, fn, arguments);
  if (!results.ok()) recorder->Mistake(results.status());
  return results;
}

}  // namespace cleave::functional
