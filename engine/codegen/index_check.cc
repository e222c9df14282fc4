#include "engine/codegen/index_check.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/constants.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

bool IsCheckedGather(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kGather) &&
         graph.attributes(v).Get("mode").AsString() == "error";
}

// Follows the indices of one axis, or divisors, through movement to where they
// are stored.
class Resolver {
 public:
  Resolver(const Graph& graph, Dim extent, int divisor_bytes,
           std::vector<IndexCheck>* checks)
      : graph_(graph),
        extent_(std::move(extent)),
        divisor_bytes_(divisor_bytes),
        checks_(*checks) {}

  // All elements of v if `component` is not given, else those whose last
  // coordinate it is.
  absl::Status Resolve(Value v, std::optional<int64_t> component) {
    if (divisor_bytes_ > 0 && IsNeverZero(graph_, v)) return absl::OkStatus();
    const Shape& shape = graph_.type(v).shape;
    if (component.has_value() && shape.back() == Dim(1)) component.reset();
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    const Attributes& attributes = graph_.attributes(v);
    const auto operand = [&] { return graph_.operands(v)[0]; };
    switch (primitive) {
      case Primitive::kReshape: {
        const Shape& from = graph_.type(operand()).shape;
        if (component.has_value() &&
            (from.empty() || from.back() != shape.back())) {
          return No("a reshape");
        }
        return Resolve(operand(), component);
      }
      case Primitive::kBroadcastInDim: {
        const auto axes = attributes.GetInts("axes");
        const bool keeps_last =
            !axes.empty() && axes.back() + 1 == int64_t(shape.size());
        if (!keeps_last) component.reset();
        const size_t outer = repeats_.size();
        repeats_.insert(repeats_.end(), shape.begin(), shape.end());
        const absl::Status status = Resolve(operand(), component);
        repeats_.resize(outer);
        return status;
      }
      case Primitive::kTranspose:
        if (component.has_value() &&
            attributes.GetInts("axes").back() + 1 != int64_t(shape.size())) {
          return No("a transpose");
        }
        return Resolve(operand(), component);
      case Primitive::kReverse:
        for (const int64_t axis : attributes.GetInts("axes")) {
          if (component.has_value() && axis + 1 == int64_t(shape.size())) {
            return No("a reversal");
          }
        }
        return Resolve(operand(), component);
      case Primitive::kConcatenate:
        return ResolveParts(v, component);
      case Primitive::kConstant: {
        const std::optional<int64_t> number = IntegerConstant(graph_, v);
        if (!number.has_value()) return No("a constant");
        return AddRange(Dim(*number), Dim(1));
      }
      case Primitive::kExtent:
        return AddRange(attributes.Get("value").AsDim(), Dim(1));
      case Primitive::kIota:
        return AddRange(Dim(0), shape[0]);
      case Primitive::kSelect:
        if (divisor_bytes_ > 0) break;
        if (const Value input = Replaces(v); input.valid()) {
          const absl::Status status = AddBase(input, component);
          replaced_ = replacement_ = 0;
          return status;
        }
        break;
      default:
        break;
    }
    if (IsMovement(graph_, v)) {
      return No(absl::StrCat("`", PrimitiveName(primitive), "`"));
    }
    return AddBase(v, component);
  }

 private:
  absl::Status No(absl::string_view what) const {
    return absl::UnimplementedError(absl::StrCat(
        divisor_bytes_ > 0 ? "a divisor of 0" : "an index out of range",
        " is an error, and ", what, " is between the ",
        divisor_bytes_ > 0 ? "divisors" : "indices",
        " and what can be checked before the kernel"));
  }

  absl::Status ResolveParts(Value v, std::optional<int64_t> component) {
    const int64_t axis = graph_.attributes(v).GetInt("axis");
    const int rank = graph_.type(v).rank();
    if (!component.has_value() || axis + 1 != rank) {
      for (const Value part : graph_.operands(v)) {
        const absl::Status status = Resolve(part, component);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    }
    int64_t begin = 0;
    for (const Value part : graph_.operands(v)) {
      const auto size = graph_.type(part).shape.back().Value();
      if (!size.has_value()) return No("a concatenation of unknown extents");
      if (*component < begin + *size) return Resolve(part, *component - begin);
      begin += *size;
    }
    return No("a concatenation");
  }

  // The input x of select(x != c, x, k) or select(x == c, k, x), whose elements
  // lie in memory; invalid for another v.
  Value Replaces(Value v) {
    const Value condition = graph_.operands(v)[0];
    const bool equal = graph_.node(condition).op == ToOpId(Primitive::kEq);
    if (!equal && graph_.node(condition).op != ToOpId(Primitive::kNe)) {
      return Value();
    }
    const Value x = graph_.operands(v)[equal ? 2 : 1];
    const auto replacement =
        IntegerConstant(graph_, graph_.operands(v)[equal ? 1 : 2]);
    const auto sides = graph_.operands(condition);
    const auto number = IntegerConstant(graph_, sides[sides[0] == x ? 1 : 0]);
    if ((sides[0] != x && sides[1] != x) || !number.has_value() ||
        !replacement.has_value() ||
        graph_.node(x).op != ToOpId(Primitive::kInput)) {
      return Value();
    }
    replaced_ = *number;
    replacement_ = *replacement;
    return x;
  }

  absl::Status AddRange(Dim first, Dim count) {
    IndexCheck check;
    check.first = std::move(first);
    check.count = std::move(count);
    return Add(std::move(check));
  }

  absl::Status AddBase(Value v, std::optional<int64_t> component) {
    IndexCheck check;
    check.base = v;
    if (component.has_value()) {
      const auto components = graph_.type(v).shape.back().Value();
      if (!components.has_value()) return No("an unknown number of axes");
      check.component = *component;
      check.components = *components;
    }
    return Add(std::move(check));
  }

  absl::Status Add(IndexCheck check) {
    check.repeats = repeats_;
    check.extent = extent_;
    check.divisor_bytes = divisor_bytes_;
    check.replaced = replaced_;
    check.replacement = replacement_;
    checks_.push_back(std::move(check));
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Dim extent_;
  const int divisor_bytes_;  // 0: of indices
  std::vector<IndexCheck>& checks_;
  Shape repeats_;  // of the broadcasts on the way
  int64_t replaced_ = 0;
  int64_t replacement_ = 0;
};

}  // namespace

bool DividesIntegers(const Graph& graph, Value node) {
  const OpId op = graph.node(node).op;
  return (op == ToOpId(Primitive::kFloorDiv) ||
          op == ToOpId(Primitive::kFloorMod) ||
          op == ToOpId(Primitive::kRem)) &&
         IsInt(graph.type(node).dtype);
}

bool IsNeverZero(const Graph& graph, Value v) {
  while (graph.node(v).op == ToOpId(Primitive::kBroadcastInDim) ||
         graph.node(v).op == ToOpId(Primitive::kReshape)) {
    v = graph.operands(v)[0];
  }
  if (const auto number = IntegerConstant(graph, v)) return *number != 0;
  const auto operands = graph.operands(v);
  const auto is_above_zero = [&](Value x) {
    return IntegerConstant(graph, x).value_or(0) > 0;
  };
  if (graph.node(v).op == ToOpId(Primitive::kMax)) {
    return is_above_zero(operands[0]) || is_above_zero(operands[1]);
  }
  if (graph.node(v).op != ToOpId(Primitive::kSelect)) return false;
  const Value condition = operands[0];
  const bool equal = graph.node(condition).op == ToOpId(Primitive::kEq);
  if (!equal && graph.node(condition).op != ToOpId(Primitive::kNe)) {
    return false;
  }
  const auto sides = graph.operands(condition);
  const Value given = operands[equal ? 2 : 1];
  const int other = sides[0] == given ? 1 : 0;
  return sides[1 - other] == given &&
         IntegerConstant(graph, sides[other]) == 0 &&
         IntegerConstant(graph, operands[equal ? 1 : 2]).value_or(0) != 0;
}

absl::StatusOr<std::vector<IndexCheck>> IndexChecks(const Graph& graph,
                                                    Value node) {
  std::vector<IndexCheck> checks;
  const Value index = graph.operands(node)[1];
  if (DividesIntegers(graph, node)) {
    Resolver resolver(graph, Dim(0), ByteSize(graph.type(index).dtype),
                      &checks);
    const absl::Status status = resolver.Resolve(index, std::nullopt);
    if (!status.ok()) return status;
    return checks;
  }
  const Value x = graph.operands(node)[0];
  const auto axes = graph.attributes(node).GetInts("axes");
  for (size_t k = 0; k < axes.size(); ++k) {
    Resolver resolver(graph, graph.type(x).shape[axes[k]], 0, &checks);
    const absl::Status status =
        resolver.Resolve(index, static_cast<int64_t>(k));
    if (!status.ok()) return status;
  }
  return checks;
}

absl::Status IndexError(const Graph& graph, Value node) {
  std::string place;
  const ProvenanceId id = graph.node(node).provenance;
  if (id != 0) {
    const Provenance& p = graph.context()->provenance(id);
    place = absl::StrCat(p.rule, ", ", p.file, ":", p.line, ": ");
  }
  return absl::OutOfRangeError(absl::StrCat(
      place, "`", PrimitiveName(ToPrimitive(graph.node(node).op)), "`: ",
      DividesIntegers(graph, node) ? "integer division by zero"
                                   : "an index is out of range"));
}

std::vector<Value> CheckedNodes(const Graph& graph,
                                const std::vector<Value>& nodes) {
  std::set<Value> seen(nodes.begin(), nodes.end());
  std::vector<Value> stack = nodes;
  std::vector<Value> checked;
  while (!stack.empty()) {
    const Value v = stack.back();
    stack.pop_back();
    if (IsCheckedGather(graph, v) || DividesIntegers(graph, v)) {
      checked.push_back(v);
    }
    for (const Value operand : graph.operands(v)) {
      if (IsMovement(graph, operand) && seen.insert(operand).second) {
        stack.push_back(operand);
      }
    }
  }
  return checked;
}

}  // namespace cleave
