#include "engine/rewrite/simplify.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "engine/ir/constants.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/rewrite_graph.h"
#include "engine/rewrite/simplify_movement.h"
#include "engine/rules/rewrite_rule.h"
#include "ops/check.h"

namespace cleave {
namespace {

// A node that may be made.
struct Candidate {
  OpId op = 0;
  AttributesId attributes = kNoAttributes;
  TypeId type = 0;
  absl::InlinedVector<Value, 4> operands;
  ProvenanceId provenance = 0;
};

// Whether a constant of a graph is `number`, each rounded to the dtype.
bool IsNumber(const Attributes& constant, DType dtype, const Exact& number) {
  const StaticValue& value = constant.Get("value");
  if (value.kind() == StaticValue::Kind::kBool) {
    return number == Exact(value.AsBool() ? 1 : 0);
  }
  if (value.kind() != StaticValue::Kind::kReal) return false;
  if (IsInt(dtype) || IsBool(dtype)) return value.AsReal() == number;
  const DType part = dtype == DType::kC64    ? DType::kF32
                     : dtype == DType::kC128 ? DType::kF64
                                             : dtype;
  const double a = value.AsReal().RoundTo(part);
  const double b = number.RoundTo(part);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// The values that the operands of a rewrite stand for in one match, and the
// dtypes.
struct Match {
  absl::InlinedVector<Value, 4> operands;
  absl::InlinedVector<std::optional<DType>, 4> dtypes;
};

class Matcher {
 public:
  Matcher(const Graph& graph, const Rewrite& rewrite, Match& match)
      : graph_(graph), rewrite_(rewrite), match_(match) {
    match_.operands.assign(rewrite.operands.size(), Value());
    match_.dtypes.assign(rewrite.dtypes.size(), std::nullopt);
  }

  bool Root(const Candidate& node) {
    const RewriteNode& root = rewrite_.left.back();
    return HasDType(root, graph_.context()->types(node.type).front().dtype) &&
           Applies(root, node.attributes, node.operands);
  }

 private:
  bool HasDType(const RewriteNode& node, DType dtype) {
    std::optional<DType>& bound = match_.dtypes[node.dtype];
    if (bound.has_value()) return *bound == dtype;
    if (!rewrite_.dtypes[node.dtype].Allows(dtype)) return false;
    bound = dtype;
    return true;
  }

  // A node of the primitive of `node`, on these operands.
  bool Applies(const RewriteNode& node, AttributesId attributes,
               absl::Span<const Value> operands) {
    if (node.primitive != Primitive::kConvert &&
        node.attributes != attributes) {
      return false;
    }
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (!At(rewrite_.left[node.children[i]], operands[i])) return false;
    }
    return true;
  }

  bool At(const RewriteNode& node, Value v) {
    if (!HasDType(node, graph_.type(v).dtype)) return false;
    switch (node.kind) {
      case RewriteNode::Kind::kOperand: {
        Value& bound = match_.operands[node.operand];
        if (!bound.valid()) bound = v;
        return bound == v;
      }
      case RewriteNode::Kind::kNumber:
        while (graph_.node(v).op == ToOpId(Primitive::kBroadcastInDim)) {
          v = graph_.operands(v)[0];
        }
        return graph_.node(v).op == ToOpId(Primitive::kConstant) &&
               IsNumber(graph_.attributes(v), graph_.type(v).dtype,
                        node.number);
      case RewriteNode::Kind::kApply:
        return graph_.node(v).op == ToOpId(node.primitive) &&
               Applies(node, graph_.node(v).attributes, graph_.operands(v));
    }
    return false;
  }

  const Graph& graph_;
  const Rewrite& rewrite_;
  Match& match_;
};

class Simplifier {
 public:
  Simplifier(const RuleSet& rules, const SimplifyOptions& options)
      : table_(rules.rewrites()), options_(options) {}

  Graph Run(const Graph& graph) {
    return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
      const Node& node = graph.node(v);
      const absl::Span<const Value> operands = copy.Operands(v);
      int budget = kMaxRewritesPerNode;
      return Make(copy.builder(),
                  Candidate{node.op,
                            node.attributes,
                            node.type,
                            {operands.begin(), operands.end()},
                            node.provenance},
                  budget);
    });
  }

 private:
  // The node, or what it is rewritten to; each rewrite takes one of `budget`.
  Value Make(GraphBuilder& builder, Candidate node, int& budget) {
    if (!IsPrimitive(node.op)) return Add(builder, node);
    const Primitive primitive = ToPrimitive(node.op);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kPointwise:
        return MakePointwise(builder, std::move(node), budget);
      case PrimitiveClass::kControl:
        node.attributes =
            WithSimplifiedRegions(*builder.context(), node.attributes);
        return Add(builder, node);
      case PrimitiveClass::kMovement:
      case PrimitiveClass::kReduction:
        return Moved(builder, node);
      default:
        return Add(builder, node);
    }
  }

  Value MakePointwise(GraphBuilder& builder, Candidate node, int& budget) {
    builder.SetProvenance(node.provenance);
    if (const auto folded =
            FoldComparison(builder, ToPrimitive(node.op), node.operands)) {
      return *folded;
    }
    Match match;
    while (const Rewrite* rewrite = Find(builder, node, match, budget)) {
      --budget;
      const RewriteNode& root = rewrite->right.back();
      if (root.kind != RewriteNode::Kind::kApply) {
        return Instance(builder, *rewrite, root, match, ShapeOf(builder, node),
                        budget);
      }
      node = Applied(builder, *rewrite, root, match, ShapeOf(builder, node),
                     budget);
    }
    const bool converts = node.op == ToOpId(Primitive::kConvert) ||
                          node.op == ToOpId(Primitive::kBitcastConvert);
    return converts ? Moved(builder, node) : Add(builder, node);
  }

  static Value Moved(GraphBuilder& builder, const Candidate& node) {
    builder.SetProvenance(node.provenance);
    const Value moved =
        SimplifyMovement(builder, ToPrimitive(node.op), node.attributes,
                         node.type, node.operands);
    return moved.valid() ? moved : Add(builder, node);
  }

  // The first rewrite that applies, and what its left side matches; null if
  // there is none.
  const Rewrite* Find(const GraphBuilder& builder, const Candidate& node,
                      Match& match, int budget) {
    if (budget == 0) return nullptr;
    for (const Rewrite* rewrite : table_.RootedAt(ToPrimitive(node.op))) {
      if (rewrite->real && !options_.approx) continue;
      if (Matcher(builder.graph(), *rewrite, match).Root(node) &&
          Types(*builder.context(), *rewrite, match)) {
        return rewrite;
      }
    }
    return nullptr;
  }

  // Whether both sides type at the dtypes that the left one has bound.
  bool Types(const Context& context, const Rewrite& rewrite,
             const Match& match) {
    std::vector<DType> chosen;
    for (size_t i = 0; i < match.dtypes.size(); ++i) {
      // The right side may convert to a dtype that it names.
      chosen.push_back(match.dtypes[i].has_value() ? *match.dtypes[i]
                                                   : *rewrite.dtypes[i].known);
    }
    const auto [it, added] =
        types_.emplace(std::make_pair(&rewrite, std::move(chosen)), false);
    if (added) it->second = rewrite.Types(context, it->first.second);
    return it->second;
  }

  static DType DTypeOf(const Rewrite& rewrite, const RewriteNode& node,
                       const Match& match) {
    const std::optional<DType>& bound = match.dtypes[node.dtype];
    return bound.has_value() ? *bound : *rewrite.dtypes[node.dtype].known;
  }

  static Shape ShapeOf(const GraphBuilder& builder, const Candidate& node) {
    return builder.context()->types(node.type).front().shape;
  }

  // A node of the right side, its operands made.
  Candidate Applied(GraphBuilder& builder, const Rewrite& rewrite,
                    const RewriteNode& node, const Match& match,
                    const Shape& shape, int& budget) {
    Context& context = *builder.context();
    const DType dtype = DTypeOf(rewrite, node, match);
    Candidate made;
    made.op = ToOpId(node.primitive);
    made.attributes = node.primitive == Primitive::kConvert
                          ? context.Intern(Attributes{{"dtype", dtype}})
                          : node.attributes;
    made.type = context.Intern(TensorType{dtype, shape});
    made.provenance = rewrite.provenance;
    for (int child : node.children) {
      made.operands.push_back(Instance(builder, rewrite, rewrite.right[child],
                                       match, shape, budget));
    }
    return made;
  }

  Value Instance(GraphBuilder& builder, const Rewrite& rewrite,
                 const RewriteNode& node, const Match& match,
                 const Shape& shape, int& budget) {
    switch (node.kind) {
      case RewriteNode::Kind::kOperand:
        return match.operands[node.operand];
      case RewriteNode::Kind::kNumber:
        builder.SetProvenance(rewrite.provenance);
        return builder.Constant(
            node.number, TensorType{DTypeOf(rewrite, node, match), shape});
      case RewriteNode::Kind::kApply:
        return MakePointwise(
            builder, Applied(builder, rewrite, node, match, shape, budget),
            budget);
    }
    return Value();
  }

  static Value Add(GraphBuilder& builder, const Candidate& node) {
    return builder.AddTyped(node.op, node.attributes, node.type, node.operands,
                            node.provenance);
  }

  AttributesId WithSimplifiedRegions(Context& context, AttributesId id) {
    const auto it = regions_.find(id);
    if (it != regions_.end()) return it->second;
    Attributes attributes = context.attributes(id);
    const Attributes given = attributes;
    for (const auto& [name, value] : given.values()) {
      if (value.kind() == StaticValue::Kind::kRegion) {
        attributes.Set(name, MakeRegion(Run(*value.AsRegion().graph)));
      }
    }
    return regions_[id] = context.Intern(attributes);
  }

  const RewriteTable& table_;
  const SimplifyOptions& options_;
  // By the attributes that they are in.
  absl::flat_hash_map<AttributesId, AttributesId> regions_;
  absl::flat_hash_map<std::pair<const Rewrite*, std::vector<DType>>, bool>
      types_;
};

}  // namespace

Graph Simplify(const Graph& graph, const RuleSet& rules,
               const SimplifyOptions& options) {
  CLEAVE_CHECK(graph.context() == rules.context())
      << "the graph is of another context";
  return Simplifier(rules, options).Run(graph);
}

}  // namespace cleave
