#include "transforms/vmap/region_safety.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ir/filled_with.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

bool IsDiscrete(const Graph& graph, Value v) {
  const DType dtype = graph.type(v).dtype;
  return !IsFloat(dtype) && !IsComplex(dtype);
}

// Whether v is one finite number other than 0, however often repeated.
bool IsConstant(const Graph& graph, Value v) {
  const std::optional<Exact> number = FilledWith(graph, v);
  return number && number->IsFinite() && *number != Exact(0);
}

RegionSafety FailsIf(bool fails, RegionSafety otherwise) {
  return fails ? RegionSafety::kMayFail : otherwise;
}

// The safety of a primitive that owns no region.
RegionSafety OfPrimitive(const Graph& region, Value v) {
  const Primitive primitive = ToPrimitive(region.node(v).op);
  const absl::Span<const Value> operands = region.operands(v);
  switch (primitive) {
    case Primitive::kGather:
      return FailsIf(region.attributes(v).Get("mode").AsString() == "error",
                     RegionSafety::kLinear);
    case Primitive::kScatter:
      return region.attributes(v).Get("mode").AsString() == "add"
                 ? RegionSafety::kLinear
                 : RegionSafety::kTotal;
    case Primitive::kFloorDiv:
    case Primitive::kFloorMod:
      return FailsIf(!IsConstant(region, operands[1]), RegionSafety::kLinear);
    case Primitive::kNonzero:
      return RegionSafety::kMayFail;
    case Primitive::kPolygamma:  // Its order may be beyond all bounds.
      return FailsIf(!IsConstant(region, operands[0]), RegionSafety::kTotal);
    case Primitive::kRem:
    case Primitive::kPow:
      return FailsIf(IsDiscrete(region, v), RegionSafety::kTotal);
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kNeg:
    case Primitive::kConvert:
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kComplex:
    case Primitive::kSelect:
    case Primitive::kInput:
    case Primitive::kResult:
      return RegionSafety::kLinear;
    case Primitive::kMul:
      if (IsConstant(region, operands[0])) return RegionSafety::kLinear;
      [[fallthrough]];
    case Primitive::kDiv:
      if (IsConstant(region, operands[1])) return RegionSafety::kLinear;
      break;
    default:
      break;
  }
  if (DerivativeOf(primitive) == DerivativeKind::kZero ||
      DerivativeOf(primitive) == DerivativeKind::kLinear) {
    return RegionSafety::kLinear;
  }
  // A node without derivatives is as good as linear.
  const bool discrete =
      std::all_of(operands.begin(), operands.end(), [&](Value operand) {
        return region.types(operand).size() == 1 && IsDiscrete(region, operand);
      });
  return discrete ? RegionSafety::kLinear : RegionSafety::kTotal;
}

// Looks into each call once.
class Searcher {
 public:
  explicit Searcher(const RuleSet& rules) : rules_(rules) {}

  absl::StatusOr<RegionSafety> Of(const Graph& region) {
    RegionSafety worst = RegionSafety::kLinear;
    for (uint32_t id = 0; id < region.size(); ++id) {
      if (worst == RegionSafety::kMayFail) break;
      CLEAVE_ASSIGN_OR_RETURN(const RegionSafety node,
                              OfNode(region, Value{id}));
      worst = std::max(worst, node);
    }
    return worst;
  }

 private:
  absl::StatusOr<RegionSafety> OfNode(const Graph& region, Value v) {
    const Node& node = region.node(v);
    if (!IsPrimitive(node.op)) return OfCall(region, v);
    if (node.op == ToOpId(Primitive::kWhile)) return RegionSafety::kMayFail;
    if (ClassOf(ToPrimitive(node.op)) != PrimitiveClass::kControl) {
      return OfPrimitive(region, v);
    }
    RegionSafety worst = RegionSafety::kLinear;
    for (const auto& [name, value] : region.attributes(v).values()) {
      if (value.kind() != StaticValue::Kind::kRegion) continue;
      CLEAVE_ASSIGN_OR_RETURN(const RegionSafety inside,
                              Of(*value.AsRegion().graph));
      worst = std::max(worst, inside);
    }
    return worst;
  }

  absl::StatusOr<RegionSafety> OfCall(const Graph& region, Value v) {
    const Node& node = region.node(v);
    // Nothing is known of what a host does.
    if (rules_.NeedsHost(node.op)) return RegionSafety::kMayFail;
    std::vector<uint32_t> key = {node.op, node.attributes};
    for (Value operand : region.operands(v)) {
      key.push_back(region.node(operand).type);
    }
    const auto it = calls_.find(key);
    if (it != calls_.end()) return it->second;
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body,
                            rules_.Body(RuleSet::SignatureOf(region, v)));
    CLEAVE_ASSIGN_OR_RETURN(const RegionSafety inside, Of(*body));
    calls_.emplace(std::move(key), inside);
    return inside;
  }

  const RuleSet& rules_;
  std::map<std::vector<uint32_t>, RegionSafety> calls_;
};

}  // namespace

absl::StatusOr<RegionSafety> SafetyOf(const Graph& region,
                                      const RuleSet& rules) {
  return Searcher(rules).Of(region);
}

}  // namespace cleave
