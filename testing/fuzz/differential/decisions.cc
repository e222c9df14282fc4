#include "testing/fuzz/differential/decisions.h"

#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/status_macros.h"
#include "testing/fuzz/differential/evaluate.h"
#include "testing/fuzz/differential/parts.h"

namespace cleave::fuzz {
namespace {

class Hash {
 public:
  void Add(int64_t value) {
    // FNV-1a. Source: Fowler, Noll, Vo, 1991.
    hash_ = (hash_ ^ static_cast<uint64_t>(value)) * 0x100000001b3;
    hash_ ^= hash_ >> 29;
  }
  // The place of a number among whole numbers.
  void AddPlace(double value) {
    Add(std::isnan(value)          ? 1
        : std::abs(value) < 0x1p62 ? static_cast<int64_t>(value) * 4
                                   : (value < 0 ? 2 : 3));
  }
  void AddSigns(const Tensor& tensor) {
    for (int64_t i = 0; i < Parts(tensor); ++i) AddSign(GetPart(tensor, i));
  }
  void AddSign(double value) {
    Add(std::isnan(value) ? 3 : value > 0 ? 1 : value < 0 ? -1 : 0);
  }
  // Numbers, each as it is.
  void AddValues(const Tensor& tensor) {
    if (IsInexact(tensor.dtype())) {
      for (int64_t i = 0; i < Parts(tensor); ++i) AddPlace(GetPart(tensor, i));
    } else {
      for (int64_t i = 0; i < tensor.size(); ++i) Add(tensor.GetInt(i));
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// Whether the primitive decides by the value of its operands. Primitives that
// make integers or bools of them decide, too, and are not listed.
bool Decides(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAbs:
    case Primitive::kSign:
    case Primitive::kCeil:
    case Primitive::kFloor:
    case Primitive::kRoundNearestEven:
    case Primitive::kRem:
    case Primitive::kCopysign:
    case Primitive::kNextafter:
    case Primitive::kMax:
    case Primitive::kMin:
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
    case Primitive::kCumulativeMax:
    case Primitive::kCumulativeMin:
    case Primitive::kSort:
    case Primitive::kDiv:
    case Primitive::kPow:
    case Primitive::kTan:
    case Primitive::kAtan2:
    case Primitive::kLgamma:
    case Primitive::kPolygamma:
    case Primitive::kLog:
    case Primitive::kSqrt:
    case Primitive::kCbrt:
      return true;
    default:
      return false;
  }
}

// For each element of x whether it is that element of the extremum of its axes.
void AddExtremes(const EvaluatedNode& node, Hash& hash) {
  const Tensor& x = node.operands[0];
  const Tensor& y = node.results[0];
  std::vector<bool> reduced(x.rank(), false);
  for (const int64_t axis : node.graph.attributes(node.value).GetInts("axes")) {
    reduced[axis] = true;
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = x.rank(); d-- > 0;) {
      if (!reduced[d]) {
        at += rest % x.shape()[d] * stride;
        stride *= x.shape()[d];
      }
      rest /= x.shape()[d];
    }
    hash.Add(x.GetDouble(i) == y.GetDouble(at));
  }
}

void AddPlaces(const EvaluatedNode& node, Hash& hash) {
  const Tensor& a = node.operands[0];
  switch (node.primitive) {
    case Primitive::kMax:
    case Primitive::kMin:
      for (int64_t i = 0; i < a.size(); ++i) {
        hash.AddSign(a.GetDouble(i) - node.operands[1].GetDouble(i));
      }
      return;
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
      return AddExtremes(node, hash);
    case Primitive::kCumulativeMax:
    case Primitive::kCumulativeMin:
      for (int64_t i = 0; i < a.size(); ++i) {
        hash.Add(a.GetDouble(i) == node.results[0].GetDouble(i));
      }
      return;
    case Primitive::kSort:
      return hash.AddValues(node.results[1]);
    case Primitive::kCeil:
    case Primitive::kFloor:
    case Primitive::kRoundNearestEven:
      return hash.AddValues(node.results[0]);
    case Primitive::kRem:
      for (int64_t i = 0; i < a.size(); ++i) {
        hash.AddPlace(
            std::trunc(a.GetDouble(i) / node.operands[1].GetDouble(i)));
        hash.AddSign(a.GetDouble(i));
      }
      return;
    case Primitive::kTan:  // the poles
      for (int64_t i = 0; i < Parts(a); ++i) {
        hash.AddPlace(std::floor(GetPart(a, i) / std::acos(-1.0) + 0.5));
      }
      return;
    case Primitive::kLgamma:
    case Primitive::kPolygamma:
      for (int64_t i = 0; i < a.size(); ++i) {
        hash.AddPlace(std::floor(node.operands.back().GetDouble(i)));
      }
      return;
    case Primitive::kDiv:
      return hash.AddSigns(node.operands[1]);
    default:
      for (const Tensor& operand : node.operands) hash.AddSigns(operand);
  }
}

// Whether a node of the region, or of one within it, decides.
bool RegionDecides(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (ToPrimitive(graph.node(v).op) == Primitive::kInput) continue;
    bool reads = false;
    for (const Value operand : graph.operands(v)) {
      reads |= IsInexact(graph.type(operand).dtype);
    }
    for (const auto& [name, value] : graph.attributes(v).values()) {
      if (value.kind() == StaticValue::Kind::kRegion &&
          RegionDecides(*value.AsRegion().graph)) {
        return true;
      }
    }
    if (reads && (Decides(ToPrimitive(graph.node(v).op)) ||
                  !IsInexact(graph.type(v).dtype))) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<uint64_t> DecisionsAt(const Graph& graph,
                                     const std::vector<Tensor>& inputs) {
  Hash hash;
  const auto results = EvaluateNodes(
      graph, inputs, [&](const EvaluatedNode& node) -> absl::Status {
        for (const auto& [name, value] :
             node.graph.attributes(node.value).values()) {
          if (value.kind() == StaticValue::Kind::kRegion &&
              RegionDecides(*value.AsRegion().graph)) {
            return absl::UnimplementedError("a region decides");
          }
        }
        bool reads = false;
        for (const Tensor& operand : node.operands) {
          reads |= IsInexact(operand.dtype());
        }
        if (!reads) return absl::OkStatus();
        if (!IsInexact(node.results[0].dtype())) {
          for (const Tensor& result : node.results) hash.AddValues(result);
        } else if (Decides(node.primitive)) {
          AddPlaces(node, hash);
        }
        return absl::OkStatus();
      });
  if (!results.ok()) return results.status();
  return hash.value();
}

}  // namespace cleave::fuzz
