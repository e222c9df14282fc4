// Transposes of padding, slices, windows and linear scans.

#include <utility>
#include <vector>

#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vjp/transpose_primitive.h"

namespace cleave {
namespace {

Value ScalarZero(GraphBuilder& b, Value like) {
  return b.Constant(Exact(0), b.type(like).dtype);
}

// Every (interior + 1)-th of `size` elements spread along `axis`. An interior
// that is no number is no stride: the elements are the first ones of rows.
Value Thin(GraphBuilder& b, Value x, int axis, const Dim& size,
           const Dim& interior) {
  if (interior == Dim(0)) return x;
  Shape shape = b.type(x).shape;
  if (const std::optional<int64_t> gap = interior.Value()) {
    std::vector<int64_t> strides(shape.size(), 1);
    strides[axis] = *gap + 1;
    shape[axis] = size;
    return b.Apply(
        Primitive::kSlice, {x},
        {{"start", StaticValue::Dims(std::vector<Dim>(shape.size(), Dim(0)))},
         {"size", StaticValue::Dims(shape)},
         {"stride", StaticValue::Ints(strides)}});
  }
  const Dim row = interior + 1;
  const std::vector<Dim> none(shape.size(), Dim(0));
  std::vector<Dim> high = none;
  high[axis] = size * row - shape[axis];
  x = emit::Pad(b, x, ScalarZero(b, x), none, high, none);
  Shape rows = shape;
  rows[axis] = size;
  const Shape result = rows;
  rows.insert(rows.begin() + axis + 1, row);
  x = emit::SliceAxis(b, b.Reshape(x, rows), axis + 1, 0, 1);
  return b.Reshape(x, result);
}

}  // namespace

Cotangents TransposePad(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  std::vector<Value> cotangents(2);
  const std::vector<Dim> low = node.attributes.GetDims("low");
  const std::vector<Dim> high = node.attributes.GetDims("high");
  const std::vector<Dim> interior = node.attributes.GetDims("interior");
  if (node.linear[0]) {
    std::vector<Dim> no_low;
    std::vector<Dim> no_high;
    for (const Dim& d : low) no_low.push_back(-d);
    for (const Dim& d : high) no_high.push_back(-d);
    Value dx = emit::Pad(b, node.dy(), ScalarZero(b, node.dy()), no_low,
                         no_high, std::vector<Dim>(low.size(), Dim(0)));
    for (size_t d = 0; d < low.size(); ++d) {
      dx =
          Thin(b, dx, static_cast<int>(d), node.types[0].shape[d], interior[d]);
    }
    cotangents[0] = dx;
  }
  if (node.linear[1]) {
    const Value none = b.Zeros(TensorType{DType::kBool, node.types[0].shape});
    const Value mask = emit::Pad(b, none, b.Constant(Exact(1), DType::kBool),
                                 low, high, interior);
    cotangents[1] = SumWhere(b, mask, node.dy());
  }
  return cotangents;
}

Cotangents TransposeSlice(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const std::vector<Dim> start = node.attributes.GetDims("start");
  const std::vector<int64_t> stride = node.attributes.GetInts("stride");
  const Shape& size = node.result_types[0].shape;
  std::vector<Dim> high;
  std::vector<Dim> interior;
  for (size_t d = 0; d < start.size(); ++d) {
    interior.push_back(stride[d] - 1);
    high.push_back(node.types[0].shape[d] - start[d] -
                   emit::SpreadExtent(size[d], interior[d]));
  }
  return std::vector<Value>{
      emit::Pad(b, node.dy(), ScalarZero(b, node.dy()), start, high, interior)};
}

Cotangents TransposeConcatenate(const TransposeNode& node) {
  const int axis = static_cast<int>(node.attributes.GetInt("axis"));
  std::vector<Value> cotangents(node.operands.size());
  Dim start = 0;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    const Dim size = node.types[i].shape[axis];
    if (node.linear[i]) {
      cotangents[i] =
          emit::SliceAxis(node.builder, node.dy(), axis, start, size);
    }
    start = start + size;
  }
  return cotangents;
}

Cotangents TransposeWindows(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  std::vector<Value> cotangents(node.operands.size());
  Attributes attributes;
  for (const auto& [name, value] : node.attributes.values()) {
    if (name != "shape") attributes.Set(name, value);
  }
  if (node.primitive == Primitive::kWindowsAdd) {
    CLEAVE_ASSIGN_OR_RETURN(cotangents[0],
                            b.Add(Primitive::kWindows, attributes,
                                  {node.dy(), ScalarZero(b, node.dy())}));
    return cotangents;
  }
  const Shape& shape = node.types[0].shape;
  if (node.linear[0]) {
    const size_t axes = attributes.Get("sizes").AsList().size();
    Attributes add = attributes;
    add.Set("shape",
            StaticValue::Dims(
                Shape(shape.end() - static_cast<int64_t>(axes), shape.end())));
    CLEAVE_ASSIGN_OR_RETURN(cotangents[0],
                            b.Add(Primitive::kWindowsAdd, add, {node.dy()}));
  }
  if (node.linear[1]) {
    CLEAVE_ASSIGN_OR_RETURN(const Value mask,
                            b.Add(Primitive::kWindows, attributes,
                                  {b.Zeros(TensorType{DType::kBool, shape}),
                                   b.Constant(Exact(1), DType::kBool)}));
    cotangents[1] = SumWhere(b, mask, node.dy());
  }
  return cotangents;
}

// c_i = dy_i + a_(i+1) c_(i+1), run from the other end. Where the cotangent of
// init is asked for it runs one element further, which is that.
Cotangents TransposeLinearScan(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  if (node.linear[0]) {
    return absl::InternalError("transpose: linear_scan is not linear in a");
  }
  const int axis = static_cast<int>(node.attributes.GetInt("axis"));
  const bool reverse = node.attributes.GetBool("reverse");
  const std::vector<Dim> none(node.types[1].shape.size(), Dim(0));
  const auto along = [&](int64_t elements) {
    std::vector<Dim> padding = none;
    padding[axis] = Dim(elements);
    return padding;
  };
  const Value zero = ScalarZero(b, node.dy());
  const bool of_init = node.linear[2];
  // a without its first element, with a zero behind the last one.
  const std::vector<Dim> first = of_init ? none : along(-1);
  const Value a =
      emit::Pad(b, Conjugate(b, node.x(0)), zero, reverse ? along(1) : first,
                reverse ? first : along(1), none);
  Value dy = node.dy();
  if (of_init) {
    dy = emit::Pad(b, dy, zero, reverse ? none : along(1),
                   reverse ? along(1) : none, none);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Value all,
      b.Add(Primitive::kLinearScan, {{"axis", axis}, {"reverse", !reverse}},
            {a, dy, b.Zeros(node.types[2])}));
  std::vector<Value> cotangents(3);
  if (!of_init) {
    cotangents[1] = all;
    return cotangents;
  }
  const Dim size = node.types[1].shape[axis];
  if (node.linear[1]) {
    cotangents[1] = emit::SliceAxis(b, all, axis, reverse ? 0 : 1, size);
  }
  const Value end = emit::SliceAxis(b, all, axis, reverse ? size : Dim(0), 1);
  cotangents[2] = b.Reshape(end, node.types[2].shape);
  return cotangents;
}

}  // namespace cleave
