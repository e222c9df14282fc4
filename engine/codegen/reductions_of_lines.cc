#include "engine/codegen/reductions_of_lines.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "engine/codegen/pick_elements.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The most elements that are taken apart.
constexpr int64_t kFewElements = 16;
// The most of those that are read by indices, and the operations on each.
constexpr int64_t kFewGathered = 4;
constexpr int kLittleArithmetic = 8;
// The most columns that are too few for a task of each thread.
constexpr int64_t kFewColumns = 1024;
constexpr int64_t kMostRowBlocks = 16;
// Elements of what is read as one row.
constexpr int64_t kRowElements = 64;
constexpr int64_t kLeastRowsOfBlock = 512;

bool IsArg(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  return op == ToOpId(Primitive::kArgmax) || op == ToOpId(Primitive::kArgmin);
}

// Whether the kernel of v may read elements by indices or of windows: much
// code, which two reductions would repeat.
bool ReadsElsewhere(const Graph& graph, Value v) {
  std::set<Value> seen;
  std::vector<Value> stack = {v};
  while (!stack.empty()) {
    const Value at = stack.back();
    stack.pop_back();
    if (!IsPrimitive(graph.node(at).op) || !seen.insert(at).second) continue;
    switch (ClassOf(ToPrimitive(graph.node(at).op))) {
      case PrimitiveClass::kGather:
      case PrimitiveClass::kWindow:
        return true;
      case PrimitiveClass::kPointwise:
      case PrimitiveClass::kMovement:
        for (const Value operand : graph.operands(at)) stack.push_back(operand);
        break;
      default:
        break;
    }
  }
  return false;
}

// Whether v is an argmax or argmin along the last axis, and none else.
bool IsArgOfLines(const Graph& graph, Value v) {
  if (!IsArg(graph, v) || ReadsElsewhere(graph, graph.operands(v)[0])) {
    return false;
  }
  const TensorType& x = graph.type(graph.operands(v)[0]);
  const std::vector<int64_t> axes = graph.attributes(v).GetInts("axes");
  return axes.size() == 1 && axes[0] + 1 == x.rank() &&
         InClass(x.dtype, DTypeClass::kReal);
}

// Whether v is an input, or reads one at other places: nothing is computed
// again where it is read in slices.
bool IsRead(const Graph& graph, Value v) {
  while (graph.node(v).op != ToOpId(Primitive::kInput)) {
    if (!IsPrimitive(graph.node(v).op)) return false;
    switch (ToPrimitive(graph.node(v).op)) {
      case Primitive::kReshape:
      case Primitive::kTranspose:
      case Primitive::kSlice:
      case Primitive::kWindows:
        v = graph.operands(v)[0];
        break;
      default:
        return false;
    }
  }
  return true;
}

// Whether v is a little arithmetic on elements that are read by indices, which
// vary along the axes.
bool IsGathered(GraphCopy& copy, Value v, const std::vector<int64_t>& axes) {
  PickElements::Places places(copy.graph().type(v).rank(), -1);
  for (const int64_t axis : axes) places[axis] = 0;
  bool gathers = false;
  return PickElements(copy).Cost(v, places, kLittleArithmetic, &gathers) <=
             kLittleArithmetic &&
         gathers;
}

// Whether v reduces axes of what is read that have few elements, and leaves
// others. Sums of narrow floats are kept wider.
bool ReducesFew(GraphCopy& copy, Value v) {
  const Graph& graph = copy.graph();
  const OpId op = graph.node(v).op;
  if (op != ToOpId(Primitive::kReduceSum) &&
      op != ToOpId(Primitive::kReduceMax) &&
      op != ToOpId(Primitive::kReduceMin) && !IsArg(graph, v)) {
    return false;
  }
  const Value x = graph.operands(v)[0];
  const TensorType& type = graph.type(x);
  const std::vector<int64_t> axes = graph.attributes(v).GetInts("axes");
  if (axes.empty() || static_cast<int>(axes.size()) == type.rank())
    return false;
  int64_t elements = 1;
  for (const int64_t axis : axes) {
    const auto extent = type.shape[axis].Value();
    if (!extent.has_value() || *extent < 1 || *extent > kFewElements) {
      return false;
    }
    elements *= *extent;
  }
  if (!InClass(type.dtype, DTypeClass::kReal) || ByteSize(type.dtype) < 4) {
    return false;
  }
  return elements <= kFewElements &&
         (IsRead(graph, x) ||
          (elements <= kFewGathered && IsGathered(copy, x, axes)));
}

// Whether v is computed by a kernel of its own, or is read: a reshape of it is
// free.
bool IsStored(const Graph& graph, Value v) {
  if (IsRead(graph, v)) return true;
  if (!IsPrimitive(graph.node(v).op)) return true;
  const PrimitiveClass c = ClassOf(ToPrimitive(graph.node(v).op));
  return c == PrimitiveClass::kContraction || c == PrimitiveClass::kScatter ||
         c == PrimitiveClass::kScan || c == PrimitiveClass::kProjection;
}

// The blocks of rows that a reduction of many rows of few columns is taken
// apart into; 1 for others. Rounding the sums of blocks of narrow floats would
// show.
int64_t RowBlocks(const Graph& graph, Value v) {
  const OpId op = graph.node(v).op;
  if (op != ToOpId(Primitive::kReduceSum) &&
      op != ToOpId(Primitive::kReduceMax) &&
      op != ToOpId(Primitive::kReduceMin)) {
    return 1;
  }
  const Value x = graph.operands(v)[0];
  const TensorType& type = graph.type(x);
  if (graph.attributes(v).GetInts("axes") != std::vector<int64_t>{0} ||
      type.rank() < 2 || !InClass(type.dtype, DTypeClass::kReal) ||
      ByteSize(type.dtype) < 4 || !IsStored(graph, x)) {
    return 1;
  }
  int64_t columns = 1;
  for (int d = 1; d < type.rank(); ++d) {
    const auto extent = type.shape[d].Value();
    if (!extent.has_value()) return 1;
    columns *= *extent;
    if (columns > kFewColumns) return 1;
  }
  const int64_t rows = type.shape[0].Value().value_or(0);
  int64_t blocks = kMostRowBlocks;
  while (blocks > 1 &&
         (rows % blocks != 0 || rows / blocks < kLeastRowsOfBlock)) {
    blocks /= 2;
  }
  return blocks;
}

Attributes Axes(const std::vector<int>& axes) {
  Attributes attributes;
  attributes.Set("axes", StaticValue::Ints(axes));
  return attributes;
}

Value Convert(GraphBuilder& builder, Value x, DType dtype) {
  Attributes attributes;
  attributes.Set("dtype", dtype);
  return builder.Apply(Primitive::kConvert, {x}, attributes);
}

Value IsNan(GraphBuilder& builder, Value x) {
  return builder.Apply(Primitive::kIsnan, {x});
}

// The least number of an element that is the largest or smallest of its line:
// the first one, and the first NaN where there is one.
Value FirstOfExtremes(GraphBuilder& builder, Value x, bool max) {
  const TensorType type = builder.type(x);
  const int last = type.rank() - 1;
  const Attributes reduced = Axes({last});
  const Value extreme = builder.Apply(
      max ? Primitive::kReduceMax : Primitive::kReduceMin, {x}, reduced);
  std::vector<int> kept(last);
  std::iota(kept.begin(), kept.end(), 0);
  Value found = builder.Apply(
      Primitive::kEq, {x, builder.BroadcastInDim(extreme, type.shape, kept)});
  if (IsFloat(type.dtype)) {
    found = builder.Apply(Primitive::kOr, {found, IsNan(builder, x)});
  }
  // Extents of kernels are below 2^31.
  Attributes line;
  line.Set("size", type.shape[last]);
  const Value numbers =
      Convert(builder, builder.Apply(Primitive::kIota, {}, line), DType::kI32);
  const Exact beyond(std::numeric_limits<int32_t>::max());
  const Value numbered = builder.Apply(
      Primitive::kSelect,
      {found, builder.BroadcastInDim(numbers, type.shape, {last}),
       builder.Constant(beyond, TensorType{DType::kI32, type.shape})});
  const Value first = builder.Apply(Primitive::kReduceMin, {numbered}, reduced);
  // The first of nothing is -1.
  const TensorType firsts = builder.type(first);
  const Value none =
      builder.Apply(Primitive::kEq, {first, builder.Constant(beyond, firsts)});
  return Convert(
      builder,
      builder.Apply(Primitive::kSelect,
                    {none, builder.Constant(Exact(-1), firsts), first}),
      DType::kI64);
}

// The elements along the axes, in the order that a reduction numbers them, each
// for all places along the others.
std::vector<Value> Elements(GraphCopy& copy, Value x,
                            const std::vector<int64_t>& axes) {
  const TensorType& type = copy.graph().type(x);
  int64_t count = 1;
  for (const int64_t axis : axes) count *= *type.shape[axis].Value();
  Shape outer;
  for (int64_t d = 0; d < type.rank(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      outer.push_back(type.shape[d]);
    }
  }
  PickElements pick(copy);
  std::vector<Value> elements;
  for (int64_t i = 0; i < count; ++i) {
    PickElements::Places places(type.rank(), -1);
    int64_t rest = i;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const int64_t extent = *type.shape[*axis].Value();
      places[*axis] = rest % extent;
      rest /= extent;
    }
    elements.push_back(copy.builder().Reshape(pick.At(x, places), outer));
  }
  return elements;
}

// An element and its number.
struct Numbered {
  Value element;
  Value at;
};

// The larger or smaller of two, the first of equals, and the first NaN.
Numbered MoreExtreme(GraphBuilder& builder, const Numbered& a,
                     const Numbered& b, bool max) {
  Value better = builder.Apply(max ? Primitive::kGt : Primitive::kLt,
                               {b.element, a.element});
  if (IsFloat(builder.type(a.element).dtype)) {
    const Value known =
        builder.Apply(Primitive::kNot, {IsNan(builder, a.element)});
    const Value first_nan =
        builder.Apply(Primitive::kAnd, {IsNan(builder, b.element), known});
    better = builder.Apply(Primitive::kOr, {better, first_nan});
  }
  return {
      builder.Apply(Primitive::kSelect, {better, b.element, a.element}),
      builder.Apply(Primitive::kSelect, {better, b.at, a.at}),
  };
}

// `combine` over all, by halves: each is read by few, however many there are,
// and what reads expressions as trees sees no large one.
template <typename T, typename Combine>
T ByHalves(absl::Span<const T> all, Combine combine) {
  if (all.size() == 1) return all[0];
  const size_t half = (all.size() + 1) / 2;
  return combine(ByHalves(all.first(half), combine),
                 ByHalves(all.subspan(half), combine));
}

// A reduction of few elements.
Value Combined(GraphCopy& copy, Value x, Primitive reduction,
               const std::vector<int64_t>& axes) {
  GraphBuilder& builder = copy.builder();
  const std::vector<Value> elements = Elements(copy, x, axes);
  const bool argmax = reduction == Primitive::kArgmax;
  if (argmax || reduction == Primitive::kArgmin) {
    const TensorType numbers = {DType::kI32, builder.type(elements[0]).shape};
    std::vector<Numbered> numbered;
    for (size_t i = 0; i < elements.size(); ++i) {
      numbered.push_back(
          {elements[i],
           builder.Constant(Exact(static_cast<int64_t>(i)), numbers)});
    }
    const Numbered best =
        ByHalves<Numbered>(numbered, [&](const Numbered& a, const Numbered& b) {
          return MoreExtreme(builder, a, b, argmax);
        });
    return Convert(builder, best.at, DType::kI64);
  }
  const Primitive combiner =
      reduction == Primitive::kReduceSum   ? Primitive::kAdd
      : reduction == Primitive::kReduceMax ? Primitive::kMax
                                           : Primitive::kMin;
  return ByHalves<Value>(elements, [&](Value a, Value b) {
    return builder.Apply(combiner, {a, b});
  });
}

// A reduction of rows by blocks of them, and then of what these give. Some rows
// of few columns lie side by side as one.
Value ReducedByBlocks(GraphBuilder& builder, Value x, Primitive reduction,
                      int64_t blocks) {
  Shape shape = builder.type(x).shape;
  int64_t columns = 1;
  for (size_t d = 1; d < shape.size(); ++d) columns *= *shape[d].Value();
  int64_t rows = *shape[0].Value() / blocks;
  int64_t together = 1;
  while (rows % 2 == 0 && together * columns < kRowElements) {
    rows /= 2;
    together *= 2;
  }
  shape[0] = Dim(together);
  shape.insert(shape.begin(), {Dim(blocks), Dim(rows)});
  const auto reduce = [&](Value of, const std::vector<int>& axes) {
    return builder.Apply(reduction, {of}, Axes(axes));
  };
  return reduce(reduce(builder.Reshape(x, shape), {1}), {0, 1});
}

}  // namespace

Graph ReductionsOfLines(const Graph& graph, bool open_extents) {
  const auto row_blocks = [&](Value v) {
    return open_extents ? 1 : RowBlocks(graph, v);
  };
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    GraphBuilder& builder = copy.builder();
    const OpId op = graph.node(v).op;
    builder.SetProvenance(graph.node(v).provenance);
    if (!open_extents && ReducesFew(copy, v)) {
      return Combined(copy, graph.operands(v)[0], ToPrimitive(op),
                      graph.attributes(v).GetInts("axes"));
    }
    if (const int64_t blocks = row_blocks(v); blocks > 1) {
      return ReducedByBlocks(builder, copy.Operands(v)[0], ToPrimitive(op),
                             blocks);
    }
    if (IsArgOfLines(graph, v)) {
      return FirstOfExtremes(builder, copy.Operands(v)[0],
                             op == ToOpId(Primitive::kArgmax));
    }
    return copy.Keep(v);
  });
}

}  // namespace cleave
