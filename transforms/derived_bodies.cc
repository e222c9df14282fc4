#include "transforms/derived_bodies.h"

#include <string>
#include <utility>
#include <vector>

#include "ops/status_macros.h"
#include "transforms/jvp.h"

namespace cleave {
namespace {

class TransformBodies : public DerivedBodies {
 public:
  absl::StatusOr<Graph> Jvp(const RuleSet& rules, const Graph& call,
                            const std::vector<bool>& active) override {
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult both,
                            cleave::Jvp(call, active, rules));
    // Without the primal results.
    GraphBuilder builder(call.context());
    std::vector<Value> inputs;
    for (const NamedValue& input : both.graph.inputs()) {
      inputs.push_back(builder.Input(input.name, both.graph.type(input.value)));
    }
    const std::vector<Value> results = builder.Inline(both.graph, inputs);
    std::vector<NamedValue> tangents;
    for (size_t i = call.outputs().size(); i < results.size(); ++i) {
      tangents.push_back({both.graph.outputs()[i].name, results[i]});
    }
    return std::move(builder).Build(std::move(tangents));
  }
};

}  // namespace

std::shared_ptr<DerivedBodies> MakeDerivedBodies() {
  return std::make_shared<TransformBodies>();
}

}  // namespace cleave
