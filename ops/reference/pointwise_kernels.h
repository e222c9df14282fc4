// Pointwise primitives whose meaning is the same over every ordered arithmetic:
// comparisons, max, min and select. Internal to ops.

#ifndef CLEAVE_OPS_REFERENCE_POINTWISE_KERNELS_H_
#define CLEAVE_OPS_REFERENCE_POINTWISE_KERNELS_H_

#include <vector>

#include "ops/primitive.h"
#include "ops/reference/arithmetic.h"
#include "ops/reference/index_map.h"

namespace cleave {

// Comparisons with NaN are false, except `ne`.
template <typename A>
bool CompareValues(const A& a, Primitive primitive, const typename A::Value& x,
                   const typename A::Value& y) {
  const bool ordered = !a.IsNaN(x) && !a.IsNaN(y);
  switch (primitive) {
    case Primitive::kEq:
      return ordered && !a.Less(x, y) && !a.Less(y, x);
    case Primitive::kNe:
      return !ordered || a.Less(x, y) || a.Less(y, x);
    case Primitive::kLt:
      return ordered && a.Less(x, y);
    case Primitive::kLe:
      return ordered && !a.Less(y, x);
    case Primitive::kGt:
      return ordered && a.Less(y, x);
    default:
      return ordered && !a.Less(x, y);
  }
}

template <typename A>
Tensor CompareKernel(const A& a, Primitive primitive, const Extents& shape,
                     const std::vector<typename A::Value>& x,
                     const std::vector<typename A::Value>& y) {
  std::vector<int64_t> results;
  results.reserve(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    results.push_back(CompareValues(a, primitive, x[i], y[i]));
  }
  return IntArithmetic{DType::kBool}.Store(shape, results);
}

template <typename A>
std::vector<typename A::Value> MaxMinKernel(
    const A& a, bool max, std::vector<typename A::Value> x,
    const std::vector<typename A::Value>& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = max ? MaxOf(a, x[i], y[i]) : MinOf(a, x[i], y[i]);
  }
  return x;
}

// Where select takes its elements from, its operands being a and b.
inline IndexMap MapOfSelect(const Tensor& condition) {
  IndexMap map = IntArithmetic{DType::kBool}.Load(condition);
  const int64_t size = condition.size();
  for (int64_t i = 0; i < size; ++i) map[i] = map[i] != 0 ? i : size + i;
  return map;
}

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_POINTWISE_KERNELS_H_
