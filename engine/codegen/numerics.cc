#include "engine/codegen/numerics.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/codegen/element_support.h"
#include "engine/codegen/library_function.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

bool IsNarrow(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

class Rewriter {
 public:
  explicit Rewriter(const RuleSet& rules) : rules_(rules) {}

  absl::StatusOr<Graph> Run(const Graph& graph) {
    return RewriteGraph(
        graph, [this](GraphCopy& copy, Value v) { return Visit(copy, v); });
  }

 private:
  absl::StatusOr<Value> Visit(GraphCopy& copy, Value v) {
    const Graph& graph = copy.graph();
    const Node& node = graph.node(v);
    if (!IsPrimitive(node.op)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", graph.context()->op_name(node.op),
                       "` is no primitive: expand the graph first"));
    }
    const Primitive primitive = ToPrimitive(node.op);
    if (ClassOf(primitive) == PrimitiveClass::kControl) {
      CLEAVE_ASSIGN_OR_RETURN(
          const AttributesId attributes,
          RewriteRegions(graph, v,
                         [this](const Graph& region) { return Run(region); }));
      return copy.Keep(v, attributes);
    }
    if (ClassOf(primitive) != PrimitiveClass::kPointwise) return copy.Keep(v);
    if (primitive == Primitive::kPolygamma && !IsOfLowOrder(graph, v)) {
      return copy.Keep(v);
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const NumericBody* numeric,
        FindNumeric(rules_, primitive, graph.type(graph.operands(v)[0]).dtype));
    if (numeric == nullptr) return copy.Keep(v);
    copy.builder().SetProvenance(node.provenance);
    // The order of a polygamma function is a number, which no dtype rounds.
    std::vector<std::optional<Exact>> numbers(graph.operands(v).size());
    if (primitive == Primitive::kPolygamma) {
      numbers[0] = FilledWith(graph, graph.operands(v)[0]);
    }
    return Instantiate(numeric->graph, copy.Operands(v), numbers, graph.type(v),
                       copy.builder());
  }

  // The body on operands of any shape, which all have; converted where their
  // dtypes are not those of the body. A choice by whether two numbers are equal
  // is made at once: `numbers` are those of operands that are known.
  absl::StatusOr<Value> Instantiate(
      const Graph& body, absl::Span<const Value> operands,
      absl::Span<const std::optional<Exact>> numbers, const TensorType& result,
      GraphBuilder& builder) {
    std::vector<Value> copies(body.size());
    std::vector<std::optional<Exact>> known(body.size());
    std::vector<std::optional<bool>> holds(body.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value input = body.inputs()[i].value;
      copies[input.id] = Convert(operands[i], body.type(input).dtype, builder);
      known[input.id] = numbers[i];
    }
    std::vector<Value> arguments;
    for (uint32_t id = 0; id < body.size(); ++id) {
      const Value v{id};
      const Node& node = body.node(v);
      if (node.op == ToOpId(Primitive::kInput)) continue;
      if (node.op == ToOpId(Primitive::kConstant)) {
        known[id] = FilledWith(body, v);
        copies[id] = builder.BroadcastTo(
            builder.AddTyped(node.op, node.attributes, node.type, {},
                             builder.provenance()),
            result.shape);
        continue;
      }
      const absl::Span<const Value> of = body.operands(v);
      if (node.op == ToOpId(Primitive::kEq) && known[of[0].id] &&
          known[of[1].id]) {
        holds[id] = *known[of[0].id] == *known[of[1].id];
      }
      if (node.op == ToOpId(Primitive::kSelect) && holds[of[0].id]) {
        const Value chosen = of[*holds[of[0].id] ? 1 : 2];
        copies[id] = copies[chosen.id];
        known[id] = known[chosen.id];
        continue;
      }
      arguments.clear();
      for (const Value operand : body.operands(v)) {
        arguments.push_back(copies[operand.id]);
      }
      CLEAVE_ASSIGN_OR_RETURN(
          copies[id], builder.AddInterned(ToPrimitive(node.op), node.attributes,
                                          arguments));
    }
    return Convert(copies[body.outputs()[0].value.id], result.dtype, builder);
  }

  static Value Convert(Value x, DType dtype, GraphBuilder& builder) {
    if (builder.type(x).dtype == dtype) return x;
    Attributes attributes;
    attributes.Set("dtype", dtype);
    return builder.Apply(Primitive::kConvert, {x}, attributes);
  }

  const RuleSet& rules_;
};

}  // namespace

absl::StatusOr<const NumericBody*> FindNumeric(const RuleSet& rules,
                                               Primitive primitive,
                                               DType dtype) {
  CLEAVE_ASSIGN_OR_RETURN(const NumericBody* numeric,
                          rules.Numeric(primitive, dtype));
  if (numeric != nullptr || !IsNarrow(dtype)) return numeric;
  return rules.Numeric(primitive, DType::kF32);
}

FloatSource FloatSourceOf(Primitive primitive) {
  if (LibraryFunction(primitive) != nullptr) return FloatSource::kLibrary;
  switch (primitive) {
    case Primitive::kRsqrt:
    case Primitive::kSigmoid:
    case Primitive::kErfinv:
    case Primitive::kPolygamma:
      return FloatSource::kReference;
    default:
      return FloatSource::kArithmetic;
  }
}

absl::StatusOr<Graph> ApplyNumerics(const Graph& graph, const RuleSet& rules) {
  if (graph.context() != rules.context()) {
    return absl::InvalidArgumentError(
        "the graph is of another context than the rules");
  }
  return Rewriter(rules).Run(graph);
}

}  // namespace cleave
