#include "engine/codegen/flatten_products.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/codegen/contracted_axes.h"
#include "engine/codegen/found_windows.h"
#include "engine/codegen/panels.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/codegen/stored.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

int CountNonUnit(const Shape& shape) {
  return static_cast<int>(shape.size() -
                          std::count(shape.begin(), shape.end(), Dim(1)));
}

// Whether elements that `v` has one behind the other, along axes that are one
// axis or `merged` ones, lie elsewhere: other movement is below where axes
// become one.
bool IsReordered(const Graph& graph, Value v, bool merged) {
  while (IsPrimitive(graph.node(v).op)) {
    const Primitive primitive = ToPrimitive(graph.node(v).op);
    if (ClassOf(primitive) != PrimitiveClass::kMovement) return false;
    const Value from = graph.operands(v)[0];
    if (primitive == Primitive::kReshape) {
      merged |= CountNonUnit(graph.type(from).shape) >
                CountNonUnit(graph.type(v).shape);
    } else if (merged) {
      return true;
    }
    v = from;
  }
  return false;
}

// The axes whose extent is not 1, in that order.
std::vector<int> NonUnit(const Shape& shape, const std::vector<int>& axes) {
  std::vector<int> result;
  for (const int axis : axes) {
    if (shape[axis] != Dim(1)) result.push_back(axis);
  }
  return result;
}

// Whether the axes follow each other, but for axes of extent 1 between them.
bool FollowEachOther(const Shape& shape, const std::vector<int>& axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] < axes[i - 1]) return false;
    for (int between = axes[i - 1] + 1; between < axes[i]; ++between) {
      if (shape[between] != Dim(1)) return false;
    }
  }
  return true;
}

// Whether the axes of an operand become one of each kind by a reshape alone.
bool LiesInOrder(const Graph& graph, Value operand,
                 const ContractedAxes& axes) {
  const Shape& shape = graph.type(operand).shape;
  const std::vector<int> own = NonUnit(shape, axes.own);
  const std::vector<int> contract = NonUnit(shape, axes.contract);
  return FollowEachOther(shape, own) && FollowEachOther(shape, contract) &&
         !IsReordered(graph, operand, own.size() > 1 || contract.size() > 1);
}

// The contracted axes of both operands in the order of side `by`.
std::array<ContractedAxes, 2> SortedAxes(const Graph& graph, Value v, int by) {
  std::array<ContractedAxes, 2> axes = {ContractedAxesOf(graph, v, 0),
                                        ContractedAxesOf(graph, v, 1)};
  std::vector<std::pair<int, int>> pairs;
  for (size_t i = 0; i < axes[by].contract.size(); ++i) {
    pairs.emplace_back(axes[by].contract[i], axes[1 - by].contract[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::tie(axes[by].contract[i], axes[1 - by].contract[i]) = pairs[i];
  }
  return axes;
}

// The same in the order in which an operand lies, the first one that can.
std::array<ContractedAxes, 2> AxesInOrder(const Graph& graph, Value v) {
  const std::array<ContractedAxes, 2> axes = SortedAxes(graph, v, 0);
  return LiesInOrder(graph, graph.operands(v)[0], axes[0])
             ? axes
             : SortedAxes(graph, v, 1);
}

bool IsOutOfOrder(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return false;
  // The weights, which are to be finite, have been put in order, as panels
  // have; windows of rows are met where they are.
  if (!FiniteOperands(graph, v).empty()) return false;
  for (const Value operand : graph.operands(v)) {
    if (WindowsOfRows(graph, operand).has_value() ||
        WindowsOfPlaces(graph, operand).has_value() ||
        WindowsOfTerms(graph, operand).has_value() ||
        PanelsOfMatrix(graph, operand).has_value()) {
      return false;
    }
  }
  const std::array<ContractedAxes, 2> axes = AxesInOrder(graph, v);
  // Vectors are summed over.
  if (axes[0].own.empty() || axes[1].own.empty()) return false;
  return !LiesInOrder(graph, graph.operands(v)[0], axes[0]) ||
         !LiesInOrder(graph, graph.operands(v)[1], axes[1]);
}

// The operand as [batch.., own, contracted].
Value Flat(const Graph& graph, Value operand, Value copy,
           const ContractedAxes& axes, GraphBuilder& builder) {
  const Shape shape = graph.type(operand).shape;
  std::vector<int> order = axes.batch;
  Shape flat;
  for (const int axis : axes.batch) flat.push_back(shape[axis]);
  for (const auto* kind : {&axes.own, &axes.contract}) {
    order.insert(order.end(), kind->begin(), kind->end());
    flat.push_back(ExtentOfAxes(shape, *kind));
  }
  const Value x = builder.Reshape(builder.Transpose(copy, order), flat);
  return LiesInOrder(graph, operand, axes) ? x : Stored(builder, x);
}

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

Value FlatProduct(const Graph& graph, Value v, absl::Span<const Value> operands,
                  GraphBuilder& builder) {
  const std::array<ContractedAxes, 2> axes = AxesInOrder(graph, v);
  std::vector<Value> flat;
  for (const int side : {0, 1}) {
    flat.push_back(Flat(graph, graph.operands(v)[side], operands[side],
                        axes[side], builder));
  }
  const int64_t batch = static_cast<int64_t>(axes[0].batch.size());
  Attributes attributes;
  for (const char* side : {"a", "b"}) {
    attributes.Set(absl::StrCat("batch_", side),
                   StaticValue::Ints(Numbers(batch)));
    attributes.Set(absl::StrCat("contract_", side),
                   StaticValue::Ints(std::vector<int64_t>{batch + 1}));
  }
  const Value product = builder.Apply(Primitive::kDotGeneral, flat, attributes);
  return builder.Reshape(product, graph.type(v).shape);
}

}  // namespace

Graph FlattenProducts(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return IsOutOfOrder(graph, v); },
      [&](GraphCopy& copy, Value v) {
        return FlatProduct(graph, v, copy.Operands(v), copy.builder());
      });
}

}  // namespace cleave
