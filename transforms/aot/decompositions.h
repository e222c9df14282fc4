// Decompositions: which ops a trace takes apart before compilers see its
// graphs, and by what.
//
//   options.decompositions = *GetDecompositions({"gelu", "layer_norm"}, rules);
//   options.decompositions.Replace("gelu", RuleText{kMyGelu});

#ifndef CLEAVE_TRANSFORMS_AOT_DECOMPOSITIONS_H_
#define CLEAVE_TRANSFORMS_AOT_DECOMPOSITIONS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"

namespace cleave::aot {

// The body that the op declares.
struct OwnBody {};
// The body of a declared op with the same inputs, attributes and results.
struct RuleName {
  std::string op;
};
// The body of the first op that this text declares: the text is loaded behind
// the rules, for one trace alone.
struct RuleText {
  std::string text;
};

// Or a function that builds the results of a call on a graph (expand.h).
using Decomposition = std::variant<OwnBody, RuleName, RuleText, BodyFunction>;

// Ops that are not named stay calls. The calls in a body are decomposed
// likewise.
struct Decompositions {
  std::map<std::string, Decomposition> by_op;
  // Ops that stay calls though they are named.
  std::set<std::string> preserve;
};

// Each op by its own body. NotFound for an op that is not declared, or that is
// a primitive.
absl::StatusOr<Decompositions> GetDecompositions(
    const std::vector<std::string>& ops, const RuleSet& rules);

// The ops of PyTorch (`aten.` ones) that are not in its Core ATen IR, by their
// own bodies: what is left of them are Core ATen ops and ops of Cleave's own.
Decompositions CoreAtenDecompositions(const RuleSet& rules);

// The decompositions that a command or a host's call names: ops by their own
// bodies, as by GetDecompositions, and "core-aten" for CoreAtenDecompositions;
// those of `preserve` stay calls.
absl::StatusOr<Decompositions> NamedDecompositions(
    const std::vector<std::string>& names,
    const std::vector<std::string>& preserve, const RuleSet& rules);

// The overloads of the Core ATen IR (PyTorch 2.15's tag `core`), as rules name
// them: "aten.add.Tensor", "aten.relu". Sorted.
const std::vector<std::string>& CoreAtenOps();

// Decompositions and the rules that they need: those given, extended by texts.
struct ResolvedDecompositions {
  std::shared_ptr<const RuleSet> rules;
  std::set<std::string> own;                   // by their own bodies
  std::map<std::string, Replacement> replace;  // by other ops and functions
  std::set<std::string> preserve;
};

// InvalidArgument with the diagnostics of a text that does not load or declares
// no op, or for a function that is none; NotFound for ops that are not
// declared.
absl::StatusOr<ResolvedDecompositions> Resolve(
    const Decompositions& decompositions, std::shared_ptr<const RuleSet> rules);

// The graph with the ops that have another rule for their body: before reverse
// mode, so that the derivative is that of what is computed. InvalidArgument
// where a rule does not fit a call.
absl::StatusOr<Graph> ReplaceOps(const Graph& graph,
                                 const ResolvedDecompositions& resolved);
// The graph with those decomposed by their own bodies, too: after it, so that
// an op's derivative is that of its rule.
absl::StatusOr<Graph> Decompose(const Graph& graph,
                                const ResolvedDecompositions& resolved);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_DECOMPOSITIONS_H_
