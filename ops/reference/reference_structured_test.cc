// Structured reference kernels on small tensors whose results are known.

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ops/reference/reference.h"

namespace cleave {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

using Extents = std::vector<int64_t>;

Tensor F(DType dtype, const Extents& shape, const std::vector<double>& values) {
  return Tensor::FromDoubles(dtype, shape, values);
}
Tensor F32(const Extents& shape, const std::vector<double>& values) {
  return F(DType::kF32, shape, values);
}
Tensor I64(const Extents& shape, const std::vector<int64_t>& values) {
  return Tensor::FromInts(DType::kI64, shape, values);
}
StaticValue Ints(const std::vector<int>& values) {
  return StaticValue::Ints(values);
}

void Expect(Primitive primitive, const Attributes& attributes,
            const std::vector<Tensor>& operands,
            const std::vector<Tensor>& want) {
  const auto got = EvalReference(primitive, attributes, operands);
  ASSERT_TRUE(got.ok()) << PrimitiveName(primitive) << ": " << got.status();
  ASSERT_EQ(got->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(SameValue((*got)[i], want[i]))
        << PrimitiveName(primitive) << "(" << attributes.ToString()
        << ") gives " << (*got)[i].ToString() << ", not " << want[i].ToString();
  }
}

absl::StatusCode CodeOf(Primitive primitive, const Attributes& attributes,
                        const std::vector<Tensor>& operands) {
  return EvalReference(primitive, attributes, operands).status().code();
}

TEST(ReferenceLeaf, ConstantsRoundOnce) {
  const Exact third = Exact(1) / Exact(3);
  Expect(Primitive::kConstant, {{"value", third}, {"dtype", DType::kF16}}, {},
         {F(DType::kF16, {}, {0.333251953125})});
  Expect(Primitive::kConstant, {{"value", Exact(-5)}, {"dtype", DType::kI8}},
         {}, {Tensor::FromInts(DType::kI8, {}, {-5})});
  const auto top =
      EvalReference(Primitive::kConstant,
                    {{"value", *Exact::Parse("18446744073709551615")},
                     {"dtype", DType::kU64}},
                    {});
  ASSERT_TRUE(top.ok()) << top.status();
  Expect(Primitive::kNot, {}, *top, {Tensor::FromInts(DType::kU64, {}, {0})});
  Expect(Primitive::kConstant, {{"value", true}, {"dtype", DType::kBool}}, {},
         {Tensor::FromInts(DType::kBool, {}, {1})});
  Expect(Primitive::kIota, {{"size", 3}}, {}, {I64({3}, {0, 1, 2})});
  Expect(Primitive::kIota, {{"size", 0}}, {}, {I64({0}, {})});
  Expect(Primitive::kExtent, {{"value", 7}}, {}, {I64({}, {7})});
  EXPECT_EQ(CodeOf(Primitive::kExtent, {{"value", Dim::Variable("n")}}, {}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Primitive::kIota, {{"size", int64_t{1} << 40}}, {}),
            absl::StatusCode::kResourceExhausted);
}

TEST(ReferenceMovement, MovesElementsOfEveryDType) {
  for (const DType dtype : AllDTypes()) {
    Tensor x(dtype, {2, 3});
    for (size_t i = 0; i < x.byte_size(); ++i) {
      x.mutable_data()[i] =
          static_cast<std::byte>(dtype == DType::kBool ? i % 2 : i % 100 + 1);
    }
    const auto back = [&](Primitive primitive, const Attributes& attributes) {
      const auto once = EvalReference(primitive, attributes, {x});
      ASSERT_TRUE(once.ok()) << once.status();
      EXPECT_FALSE(SameValue((*once)[0], x));
      Expect(primitive, attributes, *once, {x});
    };
    back(Primitive::kReverse, {{"axes", Ints({0, 1})}});
    Expect(Primitive::kReshape, {{"shape", Ints({2, 3})}}, {x}, {x});
  }
}

TEST(ReferenceMovement, PlacesElements) {
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  Expect(Primitive::kTranspose, {{"axes", Ints({1, 0})}}, {x},
         {F32({3, 2}, {1, 4, 2, 5, 3, 6})});
  // Axis d of the result is axes[d] of x.
  Expect(Primitive::kTranspose, {{"axes", Ints({2, 0, 1})}},
         {F32({1, 2, 3}, {1, 2, 3, 4, 5, 6})},
         {F32({3, 1, 2}, {1, 4, 2, 5, 3, 6})});
  Expect(Primitive::kBroadcastInDim,
         {{"shape", Ints({2, 2, 3})}, {"axes", Ints({0, 2})}},
         {F32({2, 1}, {7, 8})},
         {F32({2, 2, 3}, {7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8})});
  Expect(Primitive::kBroadcastInDim,
         {{"shape", Ints({0, 2})}, {"axes", Ints({})}}, {F32({}, {1})},
         {F32({0, 2}, {})});
  Expect(Primitive::kSlice,
         {{"start", Ints({1, 0})},
          {"size", Ints({1, 2})},
          {"stride", Ints({1, 2})}},
         {x}, {F32({1, 2}, {4, 6})});
  Expect(Primitive::kReverse, {{"axes", Ints({1})}}, {x},
         {F32({2, 3}, {3, 2, 1, 6, 5, 4})});
  const Tensor fill = F32({}, {-0.0});
  Expect(Primitive::kPad,
         {{"low", Ints({1})}, {"high", Ints({-1})}, {"interior", Ints({1})}},
         {F32({3}, {1, 2, 3}), fill}, {F32({5}, {-0.0, 1, -0.0, 2, -0.0})});
  Expect(Primitive::kPad,
         {{"low", Ints({-2})}, {"high", Ints({0})}, {"interior", Ints({0})}},
         {F32({3}, {1, 2, 3}), fill}, {F32({1}, {3})});
  Expect(Primitive::kPad,
         {{"low", Ints({1})}, {"high", Ints({1})}, {"interior", Ints({4})}},
         {F32({0}, {}), fill}, {F32({2}, {-0.0, -0.0})});
  Expect(Primitive::kConcatenate, {{"axis", 1}},
         {F32({2, 1}, {1, 2}), F32({2, 0}, {}), F32({2, 2}, {3, 4, 5, 6})},
         {F32({2, 3}, {1, 3, 4, 2, 5, 6})});
}

TEST(ReferenceWindows, ReadAndAddBack) {
  const Attributes attributes = {{"sizes", Ints({2})},
                                 {"strides", Ints({2})},
                                 {"dilations", Ints({2})},
                                 {"low", Ints({1})},
                                 {"counts", Ints({2})}};
  // (p, k) reads x at 2 p + 2 k - 1.
  Expect(Primitive::kWindows, attributes,
         {F32({1, 4}, {1, 2, 3, 4}), F32({}, {9})},
         {F32({1, 2, 2}, {9, 2, 2, 4})});
  Attributes add = attributes;
  add.Set("shape", Ints({4}));
  Expect(Primitive::kWindowsAdd, add, {F32({1, 2, 2}, {10, 20, 30, 40})},
         {F32({1, 4}, {0, 50, 0, 40})});
}

TEST(ReferenceReduction, Sums) {
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  Expect(Primitive::kReduceSum, {{"axes", Ints({0})}}, {x},
         {F32({3}, {5, 7, 9})});
  Expect(Primitive::kReduceSum, {{"axes", Ints({0, 1})}}, {x}, {F32({}, {21})});
  Expect(Primitive::kReduceSum, {{"axes", Ints({})}}, {x}, {x});
  Expect(Primitive::kReduceSum, {{"axes", Ints({0})}}, {F32({0, 2}, {})},
         {F32({2}, {0, 0})});
  Expect(Primitive::kReduceSum, {{"axes", Ints({})}}, {F32({}, {-0.0})},
         {F32({}, {0})});
  // Rounded once: in f16 steps 1 would be lost beside 2048.
  Expect(Primitive::kReduceSum, {{"axes", Ints({0})}},
         {F(DType::kF16, {4}, {2048, 1, 1, 1})}, {F(DType::kF16, {}, {2052})});
  const double huge = std::numeric_limits<double>::max();
  Expect(Primitive::kReduceSum, {{"axes", Ints({1})}},
         {F(DType::kF64, {5, 3},
            {1e16, 1, -1e16, huge, huge, -huge, kInf, 1, 2, kInf, -kInf, 1,
             kNaN, 1, 1})},
         {F(DType::kF64, {5}, {1, huge, kInf, kNaN, kNaN})});
  Expect(Primitive::kReduceSum, {{"axes", Ints({0})}},
         {Tensor::FromInts(DType::kI8, {3}, {100, 100, 100})},
         {Tensor::FromInts(DType::kI8, {}, {44})});
}

TEST(ReferenceReduction, Products) {
  const double kHuge = std::ldexp(1, 900), kTiny = std::ldexp(1, -900);
  Expect(Primitive::kReduceProd, {{"axes", Ints({1})}},
         {F(DType::kF64, {6, 4}, {kHuge, kHuge, kTiny, kTiny,  //
                                  2,     -3,    4,     0.5,    //
                                  0,     -1,    5,     1e300,  //
                                  0,     kInf,  1,     1,      //
                                  -kInf, 2,     1,     1,      //
                                  kNaN,  0,     1,     1})},
         {F(DType::kF64, {6}, {1, -12, -0.0, kNaN, -kInf, kNaN})});
  Expect(Primitive::kReduceProd, {{"axes", Ints({0})}}, {F32({0}, {})},
         {F32({}, {1})});
  // The smallest denormal, reached in one rounding.
  Expect(Primitive::kReduceProd, {{"axes", Ints({0})}},
         {F32({2}, {std::ldexp(1, -100), std::ldexp(1.5, -50)})},
         {F32({}, {std::ldexp(1, -149)})});
}

TEST(ReferenceReduction, ExtremaAndTheirPlaces) {
  const Tensor x = F32({4, 3}, {1, 5, 5, 2, kNaN, 9, -0.0, 0, -0.0,  //
                                -kInf, -kInf, -kInf});
  Expect(Primitive::kReduceMax, {{"axes", Ints({1})}}, {x},
         {F32({4}, {5, kNaN, 0, -kInf})});
  Expect(Primitive::kReduceMin, {{"axes", Ints({1})}, {"tie", "first"}}, {x},
         {F32({4}, {1, kNaN, -0.0, -kInf})});
  Expect(Primitive::kArgmax, {{"axes", Ints({1})}}, {x},
         {I64({4}, {1, 1, 0, 0})});
  Expect(Primitive::kArgmin, {{"axes", Ints({0, 1})}}, {x}, {I64({}, {4})});
  Expect(Primitive::kArgmax, {{"axes", Ints({0})}}, {F32({0, 2}, {})},
         {I64({2}, {-1, -1})});
  Expect(Primitive::kReduceMax, {{"axes", Ints({0})}}, {F32({0}, {})},
         {F32({}, {-kInf})});
  Expect(Primitive::kReduceMin, {{"axes", Ints({0})}},
         {Tensor(DType::kU8, {0})}, {Tensor::FromInts(DType::kU8, {}, {255})});
  Expect(Primitive::kReduceMax, {{"axes", Ints({0})}},
         {Tensor(DType::kI8, {0})}, {Tensor::FromInts(DType::kI8, {}, {-128})});
  const Tensor b = Tensor::FromInts(DType::kBool, {2, 2}, {0, 1, 1, 1});
  Expect(Primitive::kReduceAll, {{"axes", Ints({1})}}, {b},
         {Tensor::FromInts(DType::kBool, {2}, {0, 1})});
  Expect(Primitive::kReduceAny, {{"axes", Ints({0, 1})}}, {b},
         {Tensor::FromInts(DType::kBool, {}, {1})});
  const Tensor none(DType::kBool, {0});
  Expect(Primitive::kReduceAll, {{"axes", Ints({0})}}, {none},
         {Tensor::FromInts(DType::kBool, {}, {1})});
  Expect(Primitive::kReduceAny, {{"axes", Ints({0})}}, {none},
         {Tensor::FromInts(DType::kBool, {}, {0})});
}

TEST(ReferenceContraction, DotGeneral) {
  Expect(
      Primitive::kDotGeneral,
      {{"batch_a", Ints({0})},
       {"batch_b", Ints({1})},
       {"contract_a", Ints({2})},
       {"contract_b", Ints({0})}},
      {F32({2, 1, 2}, {1, 2, 3, 4}), F32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
      // batch 0: [1, 2] . [[1, 2], [5, 6]]; batch 1: [3, 4] . [[3, 4],
      // [7, 8]].
      {F32({2, 1, 2}, {11, 14, 37, 44})});
  const Attributes outer = {{"batch_a", Ints({})},
                            {"batch_b", Ints({})},
                            {"contract_a", Ints({})},
                            {"contract_b", Ints({})}};
  Expect(Primitive::kDotGeneral, outer, {F32({2}, {1, 2}), F32({2}, {3, kInf})},
         {F32({2, 2}, {3, kInf, 6, kInf})});
  const Attributes inner = {{"batch_a", Ints({})},
                            {"batch_b", Ints({})},
                            {"contract_a", Ints({0})},
                            {"contract_b", Ints({0})}};
  Expect(Primitive::kDotGeneral, inner, {F32({0}, {}), F32({0}, {})},
         {F32({}, {0})});
  Expect(Primitive::kDotGeneral, inner,
         {F(DType::kF64, {3}, {1e12, 1, -1e12}),
          F(DType::kF64, {3}, {1e12, 1, 1e12})},
         {F(DType::kF64, {}, {1})});
}

Attributes Conv(int stride, int low, int high, int lhs, int rhs, int groups,
                int batch_groups) {
  return {{"stride", Ints({stride})},    {"low", Ints({low})},
          {"high", Ints({high})},        {"lhs_dilation", Ints({lhs})},
          {"rhs_dilation", Ints({rhs})}, {"groups", groups},
          {"batch_groups", batch_groups}};
}

TEST(ReferenceContraction, Conv) {
  const Tensor x = F32({1, 1, 4}, {1, 2, 3, 4});
  const Tensor w = F32({1, 1, 2}, {10, 1});
  Expect(Primitive::kConv, Conv(1, 0, 0, 1, 1, 1, 1), {x, w},
         {F32({1, 1, 3}, {12, 23, 34})});
  Expect(Primitive::kConv, Conv(2, 1, 1, 1, 1, 1, 1), {x, w},
         {F32({1, 1, 3}, {1, 23, 40})});
  Expect(Primitive::kConv, Conv(1, -1, -1, 1, 1, 1, 1), {x, w},
         {F32({1, 1, 1}, {23})});
  // 1 0 2 0 3 0 4
  Expect(Primitive::kConv, Conv(1, 0, 0, 2, 1, 1, 1), {x, w},
         {F32({1, 1, 6}, {10, 2, 20, 3, 30, 4})});
  Expect(Primitive::kConv, Conv(1, 0, 0, 1, 2, 1, 1), {x, w},
         {F32({1, 1, 2}, {13, 24})});
  Expect(Primitive::kConv, Conv(1, 0, 0, 1, 4, 1, 1), {x, w},
         {F32({1, 1, 0}, {})});
  const Tensor kernels = F32({2, 1, 1}, {10, 100});
  Expect(Primitive::kConv, Conv(1, 0, 0, 1, 1, 2, 1),
         {F32({1, 2, 2}, {1, 2, 3, 4}), kernels},
         {F32({1, 2, 2}, {10, 20, 300, 400})});
  // Rows 0 and 1 of the batch meet outputs 0 and 1.
  Expect(Primitive::kConv, Conv(1, 0, 0, 1, 1, 1, 2),
         {F32({2, 1, 2}, {1, 2, 3, 4}), kernels},
         {F32({1, 2, 2}, {10, 20, 300, 400})});
  // Two channels are summed.
  Expect(Primitive::kConv, Conv(1, 0, 0, 1, 1, 1, 1),
         {F32({1, 2, 2}, {1, 2, 3, 4}), F32({1, 2, 1}, {10, 100})},
         {F32({1, 1, 2}, {310, 420})});
}

TEST(ReferenceScan, LinearScanAndCumulativeExtrema) {
  const Tensor a = F32({3, 2}, {2, 0, 2, 3, 2, kInf});
  const Tensor b = F32({3, 2}, {1, 1, 1, 1, 1, 1});
  const Tensor init = F32({2}, {1, kInf});
  Expect(Primitive::kLinearScan, {{"axis", 0}, {"reverse", false}},
         {a, b, init}, {F32({3, 2}, {3, kNaN, 7, kNaN, 15, kNaN})});
  Expect(Primitive::kLinearScan, {{"axis", 0}, {"reverse", true}}, {a, b, init},
         {F32({3, 2}, {15, kNaN, 7, kInf, 3, kInf})});
  Expect(Primitive::kLinearScan, {{"axis", 0}, {"reverse", false}},
         {F32({0}, {}), F32({0}, {}), F32({}, {1})}, {F32({0}, {})});
  const Tensor x = F32({5}, {1, 3, 2, kNaN, 9});
  Expect(Primitive::kCumulativeMax, {{"axis", 0}, {"reverse", false}}, {x},
         {F32({5}, {1, 3, 3, kNaN, kNaN})});
  Expect(Primitive::kCumulativeMin, {{"axis", 0}, {"reverse", true}}, {x},
         {F32({5}, {kNaN, kNaN, kNaN, kNaN, 9})});
}

TEST(ReferenceIndexing, Gather) {
  const Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor fill = F32({}, {-1});
  const Attributes rows = {{"axes", Ints({0})}, {"batch", 0}, {"mode", "fill"}};
  Expect(Primitive::kGather, rows, {x, I64({3, 1}, {1, -1, 2}), fill},
         {F32({3, 3}, {4, 5, 6, -1, -1, -1, -1, -1, -1})});
  Expect(Primitive::kGather,
         {{"axes", Ints({1})}, {"batch", 1}, {"mode", "fill"}},
         {x, I64({2, 2, 1}, {2, 0, 1, 3}), fill}, {F32({2, 2}, {3, 1, 5, -1})});
  Expect(Primitive::kGather,
         {{"axes", Ints({0, 1})}, {"batch", 0}, {"mode", "error"}},
         {x, I64({2, 2}, {0, 2, 1, 0}), fill}, {F32({2}, {3, 4})});
  Attributes strict = rows;
  strict.Set("mode", "error");
  EXPECT_EQ(CodeOf(Primitive::kGather, strict, {x, I64({1, 1}, {2}), fill}),
            absl::StatusCode::kOutOfRange);
  Expect(Primitive::kGather, rows, {F32({0, 2}, {}), I64({1, 1}, {0}), fill},
         {F32({1, 2}, {-1, -1})});
}

TEST(ReferenceIndexing, Scatter) {
  const Tensor x = F32({3}, {1, -0.0, 3});
  const Tensor index = I64({4, 1}, {0, 2, 0, 7});
  const Tensor updates = F32({4}, {5, kNaN, 7, 9});
  const auto scatter = [](const char* mode) {
    return Attributes{{"axes", Ints({0})}, {"batch", 0}, {"mode", mode}};
  };
  Expect(Primitive::kScatter, scatter("add"), {x, index, updates},
         {F32({3}, {13, -0.0, kNaN})});
  Expect(Primitive::kScatter, scatter("mul"), {x, index, updates},
         {F32({3}, {35, -0.0, kNaN})});
  Expect(Primitive::kScatter, scatter("max"), {x, index, updates},
         {F32({3}, {7, -0.0, kNaN})});
  Expect(Primitive::kScatter, scatter("min"), {x, index, updates},
         {F32({3}, {1, -0.0, kNaN})});
  Expect(Primitive::kScatter, scatter("set"), {x, index, updates},
         {F32({3}, {7, -0.0, kNaN})});
  // Batched, with the rest of x as a window.
  Expect(Primitive::kScatter,
         {{"axes", Ints({1})}, {"batch", 1}, {"mode", "set"}},
         {F32({2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0}), I64({2, 1, 1}, {1, 0}),
          F32({2, 1, 2}, {1, 2, 3, 4})},
         {F32({2, 2, 2}, {0, 0, 1, 2, 3, 4, 0, 0})});
}

TEST(ReferenceIndexing, SortIsStableWithNaNLargest) {
  const Tensor x = F32({6}, {2, kNaN, 0, -0.0, kNaN, -kInf});
  Expect(Primitive::kSort, {{"axis", 0}, {"descending", false}}, {x},
         {F32({6}, {-kInf, 0, -0.0, 2, kNaN, kNaN}),
          I64({6}, {5, 2, 3, 0, 1, 4})});
  Expect(Primitive::kSort, {{"axis", 0}, {"descending", true}}, {x},
         {F32({6}, {kNaN, kNaN, 2, 0, -0.0, -kInf}),
          I64({6}, {1, 4, 0, 2, 3, 5})});
  Expect(Primitive::kSort, {{"axis", 0}, {"descending", false}},
         {Tensor::FromInts(DType::kI32, {2, 2}, {3, 1, 2, 5})},
         {Tensor::FromInts(DType::kI32, {2, 2}, {2, 1, 3, 5}),
          I64({2, 2}, {1, 0, 0, 1})});
}

TEST(ReferenceIndexing, Nonzero) {
  const Attributes any = {{"size", Dim::Variable("k")}};
  Expect(Primitive::kNonzero, any, {F32({2, 2}, {0, kNaN, -0.0, 3})},
         {I64({2, 2}, {0, 1, 1, 1})});
  Expect(Primitive::kNonzero, any, {F32({}, {2})}, {I64({1, 0}, {})});
  Expect(Primitive::kNonzero, any, {F32({}, {0})}, {I64({0, 0}, {})});
  Expect(Primitive::kNonzero, any, {F32({0, 3}, {})}, {I64({0, 2}, {})});
  EXPECT_EQ(CodeOf(Primitive::kNonzero, {{"size", 2}}, {F32({2}, {0, 1})}),
            absl::StatusCode::kInvalidArgument);
}

// The indices of an axis of an empty array are not made: its extent may be more
// than there is memory for.
TEST(Reference, EmptyArraysHaveAnyOtherExtents) {
  constexpr int64_t kHuge = int64_t{1} << 32;
  const Tensor none(DType::kF32, {0, kHuge, kHuge});
  const Tensor line(DType::kF32, {0, kHuge});
  const Tensor nothing(DType::kF32, {0});
  for (const Primitive p :
       {Primitive::kReduceSum, Primitive::kReduceProd, Primitive::kReduceMax}) {
    Expect(p, {{"axes", Ints({1, 2})}}, {none}, {nothing});
    Expect(p, {{"axes", Ints({0, 1})}}, {Tensor(DType::kF32, {0, kHuge, 0})},
           {nothing});
  }
  Expect(Primitive::kArgmax, {{"axes", Ints({1, 2})}}, {none},
         {Tensor(DType::kI64, {0})});
  Expect(Primitive::kCumulativeMax, {{"axis", 1}, {"reverse", false}}, {line},
         {line});
  Expect(Primitive::kCumulativeMax, {{"axis", 0}, {"reverse", false}}, {none},
         {none});
  Expect(Primitive::kSort, {{"axis", 1}, {"descending", false}}, {line},
         {line, Tensor(DType::kI64, {0, kHuge})});
  Expect(Primitive::kDotGeneral,
         {{"batch_a", Ints({})},
          {"batch_b", Ints({})},
          {"contract_a", Ints({1})},
          {"contract_b", Ints({1})}},
         {line, line}, {Tensor(DType::kF32, {0, 0})});
  Expect(Primitive::kTranspose, {{"axes", Ints({2, 0, 1})}}, {none},
         {Tensor(DType::kF32, {kHuge, 0, kHuge})});
}

TEST(ReferenceRandom, IsAFunctionOfTheKey) {
  const Tensor key = Tensor::FromInts(DType::kKey, {}, {42});
  const auto bits = [&](const Tensor& k, DType dtype, int count) {
    return (*EvalReference(Primitive::kRandomBits,
                           {{"shape", Ints({count})}, {"dtype", dtype}},
                           {k}))[0];
  };
  // A longer stream begins with the shorter one; keys differ.
  const Tensor ten = bits(key, DType::kU32, 10);
  Expect(Primitive::kSlice,
         {{"start", Ints({0})}, {"size", Ints({3})}, {"stride", Ints({1})}},
         {ten}, {bits(key, DType::kU32, 3)});
  const auto keys =
      EvalReference(Primitive::kRandomSplit, {{"count", 2}}, {key});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_NE((*keys)[0].GetInt(0), (*keys)[0].GetInt(1));
  // Several keys give what each gives alone.
  const auto both =
      EvalReference(Primitive::kRandomBits,
                    {{"shape", Ints({4})}, {"dtype", DType::kU8}}, *keys);
  ASSERT_TRUE(both.ok()) << both.status();
  for (int k = 0; k < 2; ++k) {
    const Tensor one =
        bits(Tensor::FromInts(DType::kKey, {}, {(*keys)[0].GetInt(k)}),
             DType::kU8, 4);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ((*both)[0].GetInt(4 * k + i), one.GetInt(i));
    }
  }
}

TEST(ReferenceRandom, FoldsNumbersIn) {
  const auto folded = [](std::vector<int64_t> keys, std::vector<int64_t> by) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(keys.size())};
    const auto result =
        EvalReference(Primitive::kRandomFoldIn, {},
                      {Tensor::FromInts(DType::kKey, shape, keys),
                       Tensor::FromInts(DType::kI64, shape, by)});
    EXPECT_TRUE(result.ok()) << result.status();
    return (*result)[0];
  };
  // Each by its own number, as alone; numbers of any sign and size differ.
  const int64_t big = int64_t{1} << 62;
  const Tensor several = folded({7, 7, 7, 7, 8}, {0, 1, -1, big, 0});
  EXPECT_EQ(several.dtype(), DType::kKey);
  EXPECT_EQ(several.GetInt(2), folded({7}, {-1}).GetInt(0));
  EXPECT_EQ(several.GetInt(4), folded({8}, {0}).GetInt(0));
  std::set<int64_t> distinct = {7, 8};
  for (int i = 0; i < 5; ++i) distinct.insert(several.GetInt(i));
  EXPECT_EQ(distinct.size(), 7);
  EXPECT_EQ(folded({}, {}).size(), 0);
}

TEST(ReferenceRandom, UniformFillsTheHalfOpenInterval) {
  const Tensor key = Tensor::FromInts(DType::kKey, {}, {7});
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const auto x =
        EvalReference(Primitive::kRandomUniform,
                      {{"shape", Ints({20000})}, {"dtype", dtype}}, {key});
    ASSERT_TRUE(x.ok()) << x.status();
    double sum = 0, least = 1, most = 0;
    for (int i = 0; i < 20000; ++i) {
      const double v = (*x)[0].GetDouble(i);
      sum += v;
      least = std::min(least, v);
      most = std::max(most, v);
    }
    EXPECT_GE(least, 0);
    EXPECT_LT(most, 1);
    EXPECT_LT(least, 0.01);
    EXPECT_GT(most, 0.99);
    EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  }
}

TEST(Reference, LeavesControlToTheInterpreter) {
  EXPECT_EQ(CodeOf(Primitive::kInput, {}, {}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Primitive::kCond, {}, {}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Primitive::kWhile, {}, {}),
            absl::StatusCode::kInvalidArgument);
  Expect(Primitive::kResult, {{"index", 1}}, {F32({1}, {1}), F32({1}, {2})},
         {F32({1}, {2})});
}

}  // namespace
}  // namespace cleave
