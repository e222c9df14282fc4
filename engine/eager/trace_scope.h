// TraceScope: from its construction to its end, ops on this thread add nodes to
// one graph instead of running.
//
//   TraceScope trace(rules);
//   Tensor x = trace.Input("x", {DType::kF32, {Dim::Variable("n")}});
//   Tensor y = Exp(x[{{0, 2}}]) * weight;      // `weight` is captured
//   x[{0}] += 1;                               // an input may be written
//   Value out = *trace.Read(y);
//   bool written = trace.IsMutated(x);         // Read(x) is the new value
//   Graph graph = *std::move(trace).Finish({{"y", out}});
//
// Tensors from outside that meet the trace are *captured*: their storages
// become further inputs, one each, behind those that Input() made before. A
// captured storage cannot be written. A tensor of the trace is of no use
// elsewhere, or after it: FailedPrecondition.
//
// Traces nest: ops go to the innermost, which captures the tensors of those
// around it as it does concrete ones. AtomicScope and eager modes mean nothing
// under a trace.

#ifndef CLEAVE_ENGINE_EAGER_TRACE_SCOPE_H_
#define CLEAVE_ENGINE_EAGER_TRACE_SCOPE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/eager/tensor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave::functional {

class TraceState;

class TraceScope {
 public:
  // Ops are those of `rules`. A trace without rules or a context has a mistake
  // from the start.
  explicit TraceScope(std::shared_ptr<const RuleSet> rules);
  // Primitives only.
  explicit TraceScope(std::shared_ptr<Context> context);
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  // Ends the trace. The innermost one that has not ended records, in whatever
  // order scopes end.
  ~TraceScope();

  // The builder of the trace; after Finish, one that nobody reads.
  GraphBuilder& builder();

  // A tensor with a storage of its own, whose value is a new input. A name that
  // another input has is a mistake (InvalidArgument), as are extents that are
  // negative or invalid. A captured tensor is named `captured` and a number.
  Tensor Input(absl::string_view name, const TensorType& type);
  // A tensor with a storage of its own, whose value is `node` of builder(); a
  // mistake for one of another builder.
  Tensor Wrap(Value node);

  // The node with the tensor's present value, through its view. Captures what
  // is from outside. The tensor's mistake, if it carries one.
  absl::StatusOr<Value> Read(const Tensor& tensor);
  // The same for all of its storage.
  absl::StatusOr<Value> ReadBase(const Tensor& tensor);

  // Whether the tensor's storage is this trace's, or captured by it.
  bool Owns(const Tensor& tensor) const;
  bool IsCaptured(const Tensor& tensor) const;
  // Whether the storage was written since it came to be.
  bool IsMutated(const Tensor& tensor) const;

  struct Captured {
    Tensor tensor;  // all of a storage from outside
    Value value;    // the input that stands for it
  };
  const std::vector<Captured>& captured() const;

  // The first mistake of an op or a write under this trace: what a function
  // did not look at is found here.
  const absl::Status& status() const;

  // The graph, with all inputs. status(), if it is not OK; InvalidArgument for
  // outputs that are no nodes of builder(). Ends the recording:
  // what comes is an error, until the scope is gone.
  absl::StatusOr<Graph> Finish(std::vector<NamedValue> outputs) &&;

 private:
  void Begin(std::shared_ptr<Context> context,
             std::shared_ptr<const RuleSet> rules);

  std::shared_ptr<TraceState> state_;
};

// Whether ops on this thread are recorded by a trace.
bool InTrace();

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_TRACE_SCOPE_H_
