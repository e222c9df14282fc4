#include "engine/codegen/scatters_of_rows.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

bool ScattersRows(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kScatter)) return false;
  const Attributes& attributes = graph.attributes(v);
  const int64_t batch = attributes.GetInt("batch");
  const auto operands = graph.operands(v);
  return attributes.Get("mode").AsString() == "add" &&
         attributes.GetInts("axes") == std::vector<int64_t>{batch} &&
         graph.type(operands[1]).rank() == batch + 1 &&
         InClass(graph.type(v).dtype, DTypeClass::kReal) &&
         FilledWith(graph, operands[0]) == Exact(0);
}

Value Choice(const Graph& graph, Value v, absl::Span<const Value> operands,
             GraphBuilder& builder) {
  const TensorType& type = graph.type(v);
  const int batch = static_cast<int>(graph.attributes(v).GetInt("batch"));
  const Dim& extent = type.shape[batch];
  std::vector<int> rows(batch);
  std::iota(rows.begin(), rows.end(), 0);
  const Shape row_shape(type.shape.begin(), type.shape.begin() + batch);
  // Extents of kernels are below 2^31; a place that is none is -1.
  const Value index = builder.Reshape(operands[1], row_shape);
  const TensorType index_type = builder.type(index);
  Attributes of_row;
  of_row.Set("value", extent);
  const Value size = builder.BroadcastInDim(
      builder.Apply(Primitive::kExtent, {}, of_row), row_shape, {});
  const Value inside = builder.Apply(
      Primitive::kAnd,
      {builder.Apply(Primitive::kLt, {index, size}),
       builder.Apply(Primitive::kGe,
                     {index, builder.Constant(Exact(0), index_type)})});
  Attributes narrow;
  narrow.Set("dtype", DType::kI32);
  const TensorType narrow_type = {DType::kI32, row_shape};
  const Value place = builder.Apply(
      Primitive::kSelect,
      {inside, builder.Apply(Primitive::kConvert, {index}, narrow),
       builder.Constant(Exact(-1), narrow_type)});
  Attributes line;
  line.Set("size", extent);
  const Value numbers = builder.Apply(
      Primitive::kConvert, {builder.Apply(Primitive::kIota, {}, line)}, narrow);
  const Value found = builder.Apply(
      Primitive::kEq, {builder.BroadcastInDim(place, type.shape, rows),
                       builder.BroadcastInDim(numbers, type.shape, {batch})});
  // A sum of -0 is 0.
  const TensorType update_type = builder.type(operands[2]);
  const Value update = builder.Apply(
      Primitive::kAdd, {operands[2], builder.Constant(Exact(0), update_type)});
  std::vector<int> axes = rows;
  for (int d = batch + 1; d < type.rank(); ++d) axes.push_back(d);
  return builder.Apply(Primitive::kSelect,
                       {found, builder.BroadcastInDim(update, type.shape, axes),
                        builder.Constant(Exact(0), type)});
}

}  // namespace

Graph ScattersOfRows(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return ScattersRows(graph, v); },
      [&](GraphCopy& copy, Value v) {
        return Choice(graph, v, copy.Operands(v), copy.builder());
      });
}

}  // namespace cleave
