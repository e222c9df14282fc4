#include "engine/ir/copy_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/ir/graph_text.h"
#include "ops/check.h"

namespace cleave {
namespace {

class Copier {
 public:
  Copier(const Graph& graph, const std::shared_ptr<Context>& context)
      : graph_(graph), context_(context), builder_(context) {}

  Graph Copy() {
    builder_.Reserve(graph_.size());
    size_t inputs = 0;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value v{id};
      const Node& node = graph_.node(v);
      Value copy;
      if (node.op == ToOpId(Primitive::kInput)) {
        builder_.SetProvenance(ProvenanceOf(node));
        copy = builder_.Input(graph_.inputs()[inputs++].name, graph_.type(v));
      } else {
        copy = builder_.AddTyped(OpOf(node), AttributesOf(v), TypeOf(v),
                                 graph_.operands(v), ProvenanceOf(node));
      }
      // A graph has no node twice, and none that nothing needs.
      CLEAVE_CHECK(copy == v) << "node " << id << " became " << copy.id;
    }
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    Graph copy = *std::move(builder_).Build(graph_.outputs());
    CLEAVE_CHECK(copy.size() == graph_.size()) << "nodes are gone";
    return copy;
  }

 private:
  OpId OpOf(const Node& node) {
    if (IsPrimitive(node.op)) return node.op;
    return context_->InternOp(graph_.context()->op_name(node.op));
  }

  ProvenanceId ProvenanceOf(const Node& node) {
    return context_->Intern(graph_.context()->provenance(node.provenance));
  }

  TypeId TypeOf(Value v) {
    const auto [it, is_new] = types_.try_emplace(graph_.node(v).type);
    if (is_new) it->second = context_->Intern(graph_.types(v));
    return it->second;
  }

  AttributesId AttributesOf(Value v) {
    const auto [it, is_new] =
        attributes_.try_emplace(graph_.node(v).attributes);
    if (!is_new) return it->second;
    Attributes copy = graph_.attributes(v);
    for (const auto& [name, value] : graph_.attributes(v).values()) {
      if (value.kind() != StaticValue::Kind::kRegion) continue;
      copy.Set(name, MakeRegion(CopyGraph(*value.AsRegion().graph, context_)));
    }
    return it->second = context_->Intern(copy);
  }

  const Graph& graph_;
  const std::shared_ptr<Context>& context_;
  GraphBuilder builder_;
  absl::flat_hash_map<TypeId, TypeId> types_;
  absl::flat_hash_map<AttributesId, AttributesId> attributes_;
};

}  // namespace

Graph CopyGraph(const Graph& graph, const std::shared_ptr<Context>& context) {
  return Copier(graph, context).Copy();
}

}  // namespace cleave
