#include "transforms/derived_bodies.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/names.h"
#include "transforms/table/synthetic_rules.h"
#include "transforms/vjp/cotangent_graph.h"
#include "transforms/vjp/guarded.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

class TransformBodies : public DerivedBodies {
 public:
  absl::StatusOr<Graph> Jvp(const RuleSet& rules, const Graph& call,
                            const std::vector<bool>& active) override {
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult both,
                            cleave::Jvp(call, active, rules));
    return WithoutOutputsBefore(both.graph, call.outputs().size());
  }

  absl::StatusOr<Graph> Vjp(const RuleSet& rules, const Graph& call,
                            const std::vector<bool>& active,
                            const std::vector<bool>& live) override {
    SyntheticRules synthetic(rules);
    GraphBuilder builder(call.context());
    const std::vector<Value> primals = AddInputsOf(builder, call);
    std::vector<Value> cotangents;
    for (size_t i = 0; i < live.size(); ++i) {
      const NamedValue& output = call.outputs()[i];
      cotangents.push_back(live[i] ? builder.Input(absl::StrCat("dy", i),
                                                   call.type(output.value))
                                   : Value());
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const CotangentGraphResult walked,
        CotangentGraph(builder, call, primals, active, cotangents, synthetic));
    std::vector<NamedValue> outputs;
    for (size_t i = 0; i < active.size(); ++i) {
      if (!active[i]) continue;
      const Value cotangent = Unguarded(builder, walked.cotangents[i]);
      outputs.push_back({absl::StrCat("dx", i),
                         cotangent.valid() ? cotangent
                                           : builder.Zeros(call.type(
                                                 call.inputs()[i].value))});
    }
    return std::move(builder).Build(std::move(outputs));
  }

  absl::StatusOr<Graph> Vmap(const RuleSet& rules, const Graph& graph,
                             const std::vector<bool>& batched,
                             const Dim& batch) override {
    std::vector<int> in_axes;
    for (const bool b : batched) in_axes.push_back(b ? 0 : kNotMapped);
    return cleave::Vmap(graph, in_axes, batch,
                        std::vector<int>(graph.outputs().size(), 0), rules);
  }
};

}  // namespace

std::shared_ptr<DerivedBodies> MakeDerivedBodies() {
  return std::make_shared<TransformBodies>();
}

}  // namespace cleave
