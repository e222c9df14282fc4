#include "engine/codegen/base_reads.h"

#include <map>
#include <numeric>
#include <utility>

#include "engine/codegen/axes_inside.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/index_check.h"

namespace cleave {
namespace {

// Whether all that is checked of a gather's indices, or of divisors, lies in
// inputs.
bool ChecksInputsAlone(const Graph& graph, Value node) {
  const auto checks = IndexChecks(graph, node);
  if (!checks.ok()) return false;
  for (const IndexCheck& check : *checks) {
    if (check.base.valid() &&
        graph.node(check.base).op != ToOpId(Primitive::kInput)) {
      return false;
    }
  }
  return true;
}

class Reader {
 public:
  Reader(const Graph& graph, std::vector<BaseRead>* reads)
      : graph_(graph), reads_(*reads) {}

  // `read` says how the reader sees `v`.
  void Visit(Value v, BaseRead read) {
    if (!IsMovement(graph_, v)) {
      read.base = v;
      reads_.push_back(std::move(read));
      return;
    }
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    const auto operands = graph_.operands(v);
    switch (primitive) {
      case Primitive::kBroadcastInDim:
        return Visit(operands[0], ThroughBroadcast(v, std::move(read)));
      case Primitive::kTranspose: {
        const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
        const std::vector<int> result = read.axes;
        for (size_t d = 0; d < axes.size(); ++d) read.axes[axes[d]] = result[d];
        return Visit(operands[0], std::move(read));
      }
      case Primitive::kReshape:
        return Visit(operands[0], ThroughReshape(v, std::move(read)));
      case Primitive::kSlice:
      case Primitive::kReverse:
        read.moved = true;
        return Visit(operands[0], std::move(read));
      case Primitive::kConcatenate:
        read.moved = true;
        for (const Value operand : operands) Visit(operand, read);
        return;
      default:
        break;
    }
    // Padding and its fill; windows; gathers, whose indices are stored where
    // they are checked, and else are computed where they are read.
    const bool pad = primitive == Primitive::kPad;
    const bool inlined =
        primitive == Primitive::kGather &&
        graph_.attributes(v).Get("mode").AsString() == "error" &&
        ChecksInputsAlone(graph_, v);
    for (size_t i = 0; i < operands.size(); ++i) {
      BaseRead inner = read;
      inner.moved = true;
      inner.scattered |= !pad && !(inlined && i == 1);
      inner.repeated |= i > 0 || !pad;
      const int rank = graph_.type(operands[i]).rank();
      if (!pad || i > 0) inner.axes.assign(rank, -1);
      Visit(operands[i], std::move(inner));
    }
  }

 private:
  BaseRead ThroughBroadcast(Value v, BaseRead read) {
    const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
    const Shape& from = graph_.type(graph_.operands(v)[0]).shape;
    const Shape& to = graph_.type(v).shape;
    std::vector<int> inner(from.size(), -1);
    std::vector<bool> covered(to.size(), false);
    for (size_t d = 0; d < from.size(); ++d) {
      const bool stretched = from[d] == Dim(1) && to[axes[d]] != Dim(1);
      if (stretched) continue;
      covered[axes[d]] = true;
      inner[d] = read.axes[axes[d]];
    }
    for (size_t d = 0; d < to.size(); ++d) {
      read.repeated |= !covered[d] && to[d] != Dim(1);
    }
    read.axes = std::move(inner);
    return read;
  }

  BaseRead ThroughReshape(Value v, BaseRead read) {
    const Shape& from = graph_.type(graph_.operands(v)[0]).shape;
    const Shape& to = graph_.type(v).shape;
    auto inner = AxesBehindUnitReshape(from, to, read.axes, -1);
    read.scattered |= !inner.has_value();
    if (!inner.has_value()) inner.emplace(from.size(), -1);
    read.axes = *std::move(inner);
    return read;
  }

  const Graph& graph_;
  std::vector<BaseRead>& reads_;
};

}  // namespace

std::vector<BaseRead> BaseReads(const Graph& graph, Value node) {
  std::vector<BaseRead> reads;
  Reader reader(graph, &reads);
  const auto start = [&](Value v) {
    BaseRead read;
    read.axes.resize(graph.type(v).rank());
    std::iota(read.axes.begin(), read.axes.end(), 0);
    return read;
  };
  if (IsMovement(graph, node)) {
    reader.Visit(node, start(node));
    return reads;
  }
  // A call of the host reads as it likes.
  const OpId op = graph.node(node).op;
  const PrimitiveClass c =
      IsPrimitive(op) ? ClassOf(ToPrimitive(op)) : PrimitiveClass::kControl;
  for (const Value operand : graph.operands(node)) {
    if (graph.types(operand).size() != 1) {  // `result` of a tuple
      BaseRead read;
      read.base = operand;
      read.scattered = true;
      reads.push_back(std::move(read));
      continue;
    }
    BaseRead read = start(operand);
    // Divisors are stored where they are checked.
    const bool checked = DividesIntegers(graph, node) &&
                         operand == graph.operands(node)[1] &&
                         !ChecksInputsAlone(graph, node);
    read.scattered = checked || (c != PrimitiveClass::kPointwise &&
                                 c != PrimitiveClass::kReduction);
    reader.Visit(operand, std::move(read));
  }
  return reads;
}

}  // namespace cleave
