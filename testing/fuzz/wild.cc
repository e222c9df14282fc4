#include "testing/fuzz/wild.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/eager/tensor.h"
#include "ops/exact.h"
#include "ops/tensor.h"

namespace cleave::functional {

int64_t Wild::WildInt() {
  // None is the extent of a tensor that fits the memory and fills it.
  static const std::vector<int64_t> wild = {0,
                                            1,
                                            -1,
                                            2,
                                            3,
                                            -7,
                                            INT64_MAX,
                                            INT64_MIN,
                                            INT32_MIN,
                                            int64_t{1} << 40,
                                            -(int64_t{1} << 40),
                                            int64_t{1} << 62};
  return OneOf(wild);
}

std::vector<int64_t> Wild::SmallShape() {
  std::vector<int64_t> shape(static_cast<size_t>(Pick(3)));
  for (int64_t& extent : shape) extent = Pick(8) == 0 ? 0 : 1 + Pick(3);
  return shape;
}

DType Wild::AnyType() {
  static const std::vector<DType> types = {
      DType::kF32, DType::kI64, DType::kF64,  DType::kBool, DType::kU8,
      DType::kI8,  DType::kF16, DType::kBF16, DType::kKey,  DType::kC64};
  return OneOf(types);
}

Dim Wild::WildDim(int depth) {
  if (depth == 0 || Chance(4)) {
    static const std::vector<std::string> texts = {
        "n", "m", "3x", "", " ", "n + ", "a.b", "\n", "n\0m", "ünicode"};
    switch (Pick(4)) {
      case 0:
        return Dim(WildInt());
      case 1:
        return Dim(OneOf(texts));
      case 2: {
        const absl::StatusOr<Dim> parsed = Dim::Parse(OneOf(texts));
        return parsed.ok() ? *parsed : Dim::Invalid(parsed.status());
      }
      default:
        return Dim(Pick(5));
    }
  }
  const Dim a = WildDim(depth - 1), b = WildDim(depth - 1);
  switch (Pick(9)) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return a / b;
    case 4:
      return a % b;
    case 5:
      return Dim::Min(a, b);
    case 6:
      return Dim::Max({a, b, a * a});
    case 7:
      return a.Substitute({{"n", b}});
    default:
      return -a;
  }
}

Shape Wild::WildShape() {
  Shape shape;
  for (int64_t rank = Pick(4); rank > 0; --rank) shape.push_back(WildDim(2));
  return shape;
}

StaticValue Wild::WildValue() {
  switch (Pick(10)) {
    case 0:
      return WildInt();
    case 1:
      return StaticValue(WildDim(2));
    case 2:
      return StaticValue::Ints(std::vector<int64_t>{0});
    case 3:
      return StaticValue::Dims(WildShape());
    case 4:
      return Chance(2);
    case 5:
      return StaticValue("error");
    case 6:
      return AnyType();
    case 7:
      return StaticValue(Exact::NaN());
    case 8:
      return StaticValue();
    default:
      return StaticValue(StaticValue::Record{{"a", StaticValue(WildDim(1))}});
  }
}

void Wild::CheckDim() {
  const Dim a = WildDim(4), b = WildDim(2);
  for (const Dim& dim : {a, b, a + b, a * b, a / b, a % b}) {
    EXPECT_EQ(dim.valid(), dim.status().ok());
    EXPECT_EQ(dim, dim);
    EXPECT_EQ(dim.Hash(), Dim(dim).Hash());
    const std::string text = dim.ToString();
    const absl::StatusOr<Dim> again = Dim::Parse(text);
    if (!dim.valid()) {
      EXPECT_FALSE(again.ok()) << text;
      EXPECT_EQ(Compare(dim, CompareOp::kEq, b), Truth::kUnknown);
      EXPECT_EQ(dim.Evaluate({}).status(), dim.status());
      continue;
    }
    if (again.ok()) {
      EXPECT_EQ(*again, dim) << text;
    }
    const Dim::Interval bounds = dim.Bounds();
    const Truth less = Compare(dim, CompareOp::kLt, b);
    const Truth not_less = Compare(dim, CompareOp::kGe, b);
    const Truth equal = Compare(dim, CompareOp::kEq, b);
    // Claims are about the values that exist: `n // (m % k)` has none at m = 0.
    for (int trial = 0; trial < 6; ++trial) {
      const std::map<std::string, int64_t> extents = {
          {"n", Pick(8)}, {"m", Pick(8)}, {"a.b", Pick(3)}};
      const auto value = dim.Evaluate(extents);
      const auto other = b.Evaluate(extents);
      if (!value.ok() || !other.ok()) continue;
      const auto agrees = [&](Truth claim, bool truth) {
        return claim == Truth::kUnknown || (claim == Truth::kTrue) == truth;
      };
      const std::string where =
          absl::StrCat(text, " = ", *value, ", ", b.ToString(), " = ", *other);
      EXPECT_TRUE(!bounds.low || *bounds.low <= *value) << where;
      EXPECT_TRUE(!bounds.high || *bounds.high >= *value) << where;
      EXPECT_TRUE(agrees(less, *value < *other)) << where;
      EXPECT_TRUE(agrees(not_less, *value >= *other)) << where;
      EXPECT_TRUE(agrees(equal, *value == *other)) << where;
    }
  }
  Constraints constraints;
  constraints.Assume(a, static_cast<CompareOp>(Pick(6)), b).IgnoreError();
  Compare(a, static_cast<CompareOp>(Pick(6)), WildDim(2), constraints);
  DecidingConstraint(a, static_cast<CompareOp>(Pick(6)), b);
}

void Wild::CheckConcrete() {
  const DType dtype = AnyType();
  std::vector<int64_t> shape;
  for (int64_t rank = Pick(4); rank > 0; --rank) {
    shape.push_back(Chance(3) ? WildInt() : Pick(4));
  }
  std::vector<double> doubles;
  for (int64_t i = Pick(6); i > 0; --i) {
    doubles.push_back(Chance(3) ? std::nan("") : 1e30 * SmallInt());
  }
  const std::vector<int64_t> ints(static_cast<size_t>(Pick(6)), WildInt());
  // A large tensor that is legal is no mistake, and slow.
  const auto count = [&] {
    double all = 1;
    for (const int64_t extent : shape) all *= static_cast<double>(extent);
    return all;
  };
  if (count() > 1e6 && count() < 1e10) return;
  std::vector<cleave::Tensor> tensors = {
      cleave::Tensor(dtype, shape),
      cleave::Tensor::FromDoubles(dtype, shape, doubles),
      cleave::Tensor::FromInts(dtype, shape, ints),
      cleave::Tensor::Scalar(dtype, Chance(2) ? 1e300 : 1),
      cleave::Tensor::FromDoubles(dtype, {static_cast<int64_t>(doubles.size())},
                                  doubles)};
  for (cleave::Tensor& tensor : tensors) {
    EXPECT_EQ(tensor.valid(), tensor.status().ok());
    for (const int64_t i : {WildInt(), Pick(4)}) {
      const bool there = tensor.valid() && i >= 0 && i < tensor.size();
      EXPECT_TRUE(there || !tensor.DoubleAt(i).ok());
      EXPECT_TRUE(there || !tensor.IntAt(i).ok());
      EXPECT_TRUE(there || !tensor.ComplexAt(i).ok());
      tensor.GetDouble(i);
      tensor.GetInt(i);
      tensor.GetComplex(i);
    }
    const Tensor eager = tensor;
    EXPECT_EQ(eager.valid(), tensor.valid());
    EXPECT_EQ(eager.status(), tensor.status());
    EXPECT_EQ(SameValue(tensor, tensor), tensor.valid());
    tensor.SetInt(WildInt(), WildInt());
    tensor.SetDouble(Pick(3), Chance(2) ? std::nan("") : 1e20);
    tensor.SetComplex(Pick(3), {1, 2});
    EXPECT_EQ(tensor.valid(), tensor.status().ok());
    tensor.ToString();
  }
  Exact::FromDouble(1e308).RoundTo(dtype);
  Exact::Parse(absl::StrCat(WildInt(), "e", WildInt())).IgnoreError();
  RoundToDType(1e40, dtype);
}

}  // namespace cleave::functional
