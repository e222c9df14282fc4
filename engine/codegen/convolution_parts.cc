#include "engine/codegen/convolution_parts.h"

#include <numeric>

#include "engine/codegen/stored.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave::internal_windows {
namespace {

bool IsNegative(const Dim& dim) { return dim.Value().value_or(0) < 0; }

}  // namespace

std::optional<int64_t> SizeOf(const Shape& shape) {
  int64_t size = 1;
  for (const Dim& dim : shape) {
    const std::optional<int64_t> extent = dim.Value();
    if (!extent || __builtin_mul_overflow(size, *extent, &size)) {
      return std::nullopt;
    }
  }
  return size;
}

std::vector<int64_t> Numbers(int first, int count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<int> Order(std::initializer_list<std::pair<int, int>> ranges) {
  std::vector<int> order;
  for (const auto& [first, count] : ranges) {
    for (int i = 0; i < count; ++i) order.push_back(first + i);
  }
  return order;
}

Value Padded(GraphBuilder& builder, Value x, const Attributes& attributes,
             bool stored) {
  const auto dilations = attributes.GetInts("lhs_dilation");
  const size_t leading = builder.type(x).shape.size() - dilations.size();
  std::vector<int64_t> interior(leading, 0);
  for (const int64_t dilation : dilations) interior.push_back(dilation - 1);
  const std::vector<int64_t> none(interior.size(), 0);
  Attributes pad;
  pad.Set("interior", StaticValue::Ints(interior));
  bool any = interior != none;
  for (const char* side : {"low", "high"}) {
    std::vector<Dim> zeros(leading, Dim(0));
    for (const Dim& padding : attributes.GetDims(side)) {
      zeros.push_back(IsNegative(padding) ? Dim(0) : padding);
    }
    any = any || zeros != std::vector<Dim>(zeros.size(), Dim(0));
    pad.Set(side, StaticValue::Dims(zeros));
  }
  if (!any) return x;
  const Value zero = builder.Constant(Exact(0), builder.type(x).dtype);
  const Value padded = builder.Apply(Primitive::kPad, {x, zero}, pad);
  return stored ? Stored(builder, padded) : padded;
}

Value WindowsOf(const Convolution& conv, Value padded) {
  std::vector<Dim> low;
  for (const Dim& padding : conv.attributes.GetDims("low")) {
    low.push_back(IsNegative(padding) ? padding : Dim(0));
  }
  const Shape& shape = conv.type.shape;
  Attributes windows;
  windows.Set("counts", StaticValue::Dims({shape.begin() + 2, shape.end()}));
  windows.Set("sizes", StaticValue::Dims(conv.sizes));
  windows.Set("low", StaticValue::Dims(low));
  windows.Set("strides", conv.attributes.Get("stride"));
  windows.Set("dilations", conv.attributes.Get("rhs_dilation"));
  const Value zero =
      conv.builder.Constant(Exact(0), conv.builder.type(padded).dtype);
  return conv.builder.Apply(Primitive::kWindows, {padded, zero}, windows);
}

Value Dot(GraphBuilder& builder, Value a, Value b, int batch,
          std::vector<int64_t> contract_a, std::vector<int64_t> contract_b) {
  Attributes attributes;
  attributes.Set("batch_a", StaticValue::Ints(Numbers(0, batch)));
  attributes.Set("batch_b", StaticValue::Ints(Numbers(0, batch)));
  attributes.Set("contract_a", StaticValue::Ints(std::move(contract_a)));
  attributes.Set("contract_b", StaticValue::Ints(std::move(contract_b)));
  return builder.Apply(Primitive::kDotGeneral, {a, b}, attributes);
}

Value ForEach(const Convolution& conv, Shape batch, Value weights) {
  const Shape& each = conv.builder.type(weights).shape;
  batch.insert(batch.end(), each.begin(), each.end());
  return conv.builder.BroadcastTo(weights, batch);
}

}  // namespace cleave::internal_windows
