// SampledCall: one call of an op at concrete types and attributes, and the
// graphs that it means.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_SAMPLED_CALL_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_SAMPLED_CALL_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor_type.h"

namespace cleave {

// The tensors of one declared input: none if it is absent, one, or those of a
// variadic input (single elements may be absent).
struct SampledInput {
  std::string name;
  bool variadic = false;
  std::vector<std::optional<TensorType>> types;
  // An integer input of a fixed dtype is taken for an index or a label, until
  // TellInts sees what becomes of it.
  bool is_index = false;
};

struct SampledCall {
  std::string op;
  std::vector<SampledInput> inputs;
  Attributes attributes;                // those given
  Attributes statics;                   // `static` inputs
  std::map<std::string, DType> dtypes;  // of the `where` variables
  // The numbers that all floats are taken from; empty: any.
  std::vector<double> points;
  // The constants that integers are compared with (TellInts).
  std::vector<int64_t> int_guards;

  // The operands in order: the tensors that are there.
  std::vector<TensorType> OperandTypes() const;
  // "x", "xs.0", ... by operand.
  std::vector<std::string> OperandNames() const;
  // Whether each operand holds indices.
  std::vector<bool> IndexOperands() const;
  // `softplus(x: f32[3], beta: 2)`.
  std::string ToString() const;
};

// A graph of one call: its inputs are the operands, then `extra` ones, which
// are passed by name; its outputs are the results that are there, by their
// names. `op` replaces the name of the call's op if it is not empty. Errors of
// RuleSet::Call: InvalidArgument where the op rejects the call.
absl::StatusOr<Graph> MakeCallGraph(
    const RuleSet& rules, const SampledCall& call, absl::string_view op = "",
    const std::vector<std::pair<std::string, TensorType>>& extra = {});

// The signature of the only call in a graph of MakeCallGraph.
absl::StatusOr<Signature> CallSignature(const Graph& call_graph);

// The graphs that are compared for one call, of primitives only.
struct CallGraphs {
  Graph call;                 // the composite call
  Graph body;                 // expanded
  std::optional<Graph> spec;  // over the reals; nullopt if there is none
  // The body over the reals (over_reals.h), where that is another graph.
  std::optional<Graph> real_body;
  const Graph& BodyOverReals() const { return real_body ? *real_body : body; }
  // The spec, or else the body: as the call is meant.
  const Graph& Meaning() const { return spec ? *spec : BodyOverReals(); }
  // Spec and body are one graph.
  bool same = false;
};
absl::StatusOr<CallGraphs> MakeCallGraphs(const RuleSet& rules,
                                          const SampledCall& call);

// A result with an extent below 0: the call's sizes make no result.
bool HasNegativeExtent(const Graph& call_graph);

// Every output of `graph` depends on its inputs element by element: all nodes
// are pointwise, constants, or constants broadcast, and all shapes are equal.
bool IsElementwise(const Graph& graph);

// Constants that the graph compares with or clamps to, ascending.
std::vector<double> GuardConstants(const Graph& graph);

// Says of the integers of a call what its graphs tell: the constants that they
// are compared with, clamped to or chosen from, and which inputs are no index,
// since no value of a gather, of a scatter or of places comes of them.
void TellInts(const CallGraphs& graphs, SampledCall& call);

// Errors of the samples, not of the rule: an index that lies outside, an
// integer division by zero, a guard that does not hold.
inline bool IsBadSample(const absl::Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange ||
         status.code() == absl::StatusCode::kFailedPrecondition;
}

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_SAMPLED_CALL_H_
