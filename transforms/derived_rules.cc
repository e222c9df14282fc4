#include "transforms/derived_rules.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/jvp/tangent_rule.h"
#include "transforms/table/names.h"
#include "transforms/table/rule_tables.h"
#include "transforms/vjp/cotangent_graph.h"
#include "transforms/vjp/cotangent_rules.h"
#include "transforms/vjp/guarded.h"
#include "transforms/vmap/batch_rule.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

class Maker : public RuleMaker {
 public:
  Maker(const RuleSet& rules, const TransformOptions& options) {
    if (options.keep_identity) {
      identity_ = std::make_unique<IdentityFinder>(rules);
    }
  }

  absl::StatusOr<BatchRule> Batch(const Signature& signature,
                                  const std::vector<bool>& batched,
                                  const Dim& batch, RuleTable& table) override {
    return MakeBatchRule(signature, batched, batch, table, identity_.get());
  }
  absl::StatusOr<TangentRule> Tangent(const Signature& signature,
                                      TypeId results,
                                      const std::vector<bool>& active,
                                      RuleTable& table) override {
    return MakeTangentRule(signature, results, active, table);
  }
  absl::StatusOr<CotangentRule> Cotangent(const Signature& signature,
                                          TypeId results,
                                          const std::vector<bool>& active,
                                          const std::vector<bool>& live,
                                          RuleTable& table) override {
    return MakeCotangentRule(signature, results, active, live, table);
  }
  absl::StatusOr<CotangentRule> Transposed(const Signature& signature,
                                           TypeId results,
                                           const std::vector<bool>& linear,
                                           const std::vector<bool>& live,
                                           RuleTable& table) override {
    return MakeTransposedRule(signature, results, linear, live, table);
  }
  absl::StatusOr<ControlRule> Control(const Signature& signature,
                                      TypeId results,
                                      const std::vector<bool>& active,
                                      RuleTable& table) override {
    return MakeControlRule(signature, results, active, table);
  }

 private:
  std::unique_ptr<IdentityFinder> identity_;  // null: nothing is kept
};

class Derived : public RuleTables {
 public:
  explicit Derived(const RuleSet& rules) : RuleTables(rules) {}

  absl::StatusOr<Graph> Jvp(const Graph& call,
                            const std::vector<bool>& active) override {
    CLEAVE_ASSIGN_OR_RETURN(const JvpResult both,
                            cleave::Jvp(call, active, rules()));
    return WithoutOutputsBefore(both.graph, call.outputs().size());
  }

  absl::StatusOr<Graph> Vjp(const Graph& call, const std::vector<bool>& active,
                            const std::vector<bool>& live) override {
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
        CotangentGraph(builder, call, primals, active, cotangents, at({})));
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

  absl::StatusOr<Graph> Vmap(const Graph& graph,
                             const std::vector<bool>& batched,
                             const Dim& batch) override {
    std::vector<int> in_axes;
    for (const bool b : batched) in_axes.push_back(b ? 0 : kNotMapped);
    return cleave::Vmap(graph, in_axes, batch,
                        std::vector<int>(graph.outputs().size(), 0), rules());
  }

 private:
  std::unique_ptr<RuleMaker> MakeMaker(
      const TransformOptions& options) const override {
    return std::make_unique<Maker>(rules(), options);
  }
};

}  // namespace

std::unique_ptr<DerivedRules> MakeDerivedRules(const RuleSet& rules) {
  return std::make_unique<Derived>(rules);
}

}  // namespace cleave
