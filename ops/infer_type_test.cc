#include "ops/infer_type.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using List = std::vector<StaticValue>;

Dim D(const char* text) { return *Dim::Parse(text); }
StaticValue Ints(const std::vector<int>& values) {
  return StaticValue::Ints(values);
}
StaticValue Dims(const std::vector<Dim>& values) {
  return StaticValue::Dims(values);
}

// "f32[2] i64[2] if n == 3" or the message of the error.
std::string Inferred(const char* primitive, const Attributes& attributes,
                     const std::vector<std::string>& operands) {
  std::vector<TensorType> types;
  for (const std::string& text : operands) {
    types.push_back(*ParseTensorType(text));
  }
  const auto inferred = InferType(*FindPrimitive(primitive), attributes, types);
  if (!inferred.ok()) {
    EXPECT_EQ(inferred.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(inferred.status().message());
  }
  std::string text = absl::StrJoin(
      inferred->results, " ", [](std::string* out, const TensorType& type) {
        absl::StrAppend(out, type.ToString());
      });
  for (const ShapeGuard& guard : inferred->guards) {
    static constexpr const char* kOps[] = {"==", "!=", "<", "<=", ">", ">="};
    absl::StrAppend(&text, " if ", guard.lhs.ToString(), " ",
                    kOps[static_cast<int>(guard.op)], " ",
                    guard.rhs.ToString());
  }
  return text;
}

struct Case {
  const char* primitive;
  Attributes attributes;
  std::vector<std::string> operands;
  std::string want;
};

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(Inferred(c.primitive, c.attributes, c.operands), c.want)
        << c.primitive << "(" << absl::StrJoin(c.operands, ", ") << "; "
        << c.attributes.ToString() << ")";
  }
}

TEST(InferType, Leaves) {
  Check({
      {"constant", {{"value", Exact(3)}, {"dtype", DType::kF16}}, {}, "f16[]"},
      {"constant", {{"value", true}, {"dtype", DType::kBool}}, {}, "bool[]"},
      {"constant", {{"value", Exact(255)}, {"dtype", DType::kU8}}, {}, "u8[]"},
      {"constant",
       {{"value", Exact(256)}, {"dtype", DType::kU8}},
       {},
       "`constant`: 256 is out of range for u8"},
      {"constant",
       {{"value", Exact(1) / Exact(2)}, {"dtype", DType::kI32}},
       {},
       "`constant`: 0.5 is no i32"},
      {"constant",
       {{"value", true}, {"dtype", DType::kF32}},
       {},
       "`constant`: attribute `value` must be a number, not true"},
      {"extent", {{"value", D("n")}}, {}, "i64[]"},
      {"iota", {{"size", D("n + 1")}}, {}, "i64[n + 1]"},
      {"iota",
       {{"size", -1}},
       {},
       "`iota`: an extent of the result: -1 >= 0 does not hold"},
      {"iota", {}, {}, "`iota`: attribute `size` is missing"},
      {"result", {{"index", 1}}, {"f32[2]", "i64[2]"}, "i64[2]"},
      {"result",
       {{"index", 2}},
       {"f32[2]", "i64[2]"},
       "`result`: attribute `index` is 2, but there are 2 results"},
  });
}

TEST(InferType, Pointwise) {
  Check({
      {"exp", {}, {"f32[n]"}, "f32[n]"},
      {"exp", {}, {"c64[2]"}, "c64[2]"},
      {"exp",
       {},
       {"i64[2]"},
       "`exp`: operand 0 is i64[2], but its dtype must be a float or complex"},
      {"exp", {}, {"f32", "f32"}, "`exp`: takes 1 operands, not 2"},
      {"exp", {{"axis", 0}}, {"f32"}, "`exp`: unknown attribute `axis`"},
      {"abs", {}, {"c128[3]"}, "f64[3]"},
      {"real", {}, {"c64"}, "f32[]"},
      {"real",
       {},
       {"f32"},
       "`real`: operand 0 is f32[], but its dtype must be complex"},
      {"add", {}, {"f32[n]", "f32[m]"}, "f32[n] if n == m"},
      {"add",
       {},
       {"f32[2]", "f32[3]"},
       "`add`: the operands: axis 0 of shapes [2] and [3]: 2 == 3 does not "
       "hold"},
      {"add",
       {},
       {"f32[2]", "f64[2]"},
       "`add`: operands 0 and 1 have dtypes f32 and f64, but must agree"},
      {"max", {{"tie", "first"}}, {"f32", "f32"}, "f32[]"},
      {"max",
       {{"tie", "third"}},
       {"f32", "f32"},
       "`max`: attribute `tie` is \"third\", but must be one of even, first, "
       "second"},
      {"lt", {}, {"i8[2]", "i8[2]"}, "bool[2]"},
      {"lt",
       {},
       {"c64", "c64"},
       "`lt`: operand 0 is c64[], but its dtype must be a bool, a float or an "
       "integer"},
      {"select", {}, {"bool[2]", "key[2]", "key[2]"}, "key[2]"},
      {"select",
       {},
       {"f32[2]", "f32[2]", "f32[2]"},
       "`select`: operand 0 is f32[2], but its dtype must be a bool"},
      {"ldexp", {}, {"f32[2]", "i32[2]"}, "f32[2]"},
      {"ldexp",
       {},
       {"f32[2]", "i64[2]"},
       "`ldexp`: operand 1 is i64[2], but its dtype must be i32"},
      {"complex", {}, {"f32", "f32"}, "c64[]"},
      {"convert", {{"dtype", DType::kF64}}, {"bool[n]"}, "f64[n]"},
      {"convert",
       {{"dtype", "f64"}},
       {"bool"},
       "`convert`: attribute `dtype` must be a dtype, not \"f64\""},
      {"convert",
       {{"dtype", DType::kF32}},
       {"c64"},
       "`convert`: complex does not convert to f32: take its real part"},
      {"bitcast_convert", {{"dtype", DType::kI32}}, {"f32[2]"}, "i32[2]"},
      {"bitcast_convert",
       {{"dtype", DType::kI64}},
       {"f32"},
       "`bitcast_convert`: f32 and i64 differ in size"},
  });
}

TEST(InferType, Movement) {
  Check({
      {"broadcast_in_dim",
       {{"shape", Dims({D("b"), D("n"), 3})}, {"axes", Ints({1, 2})}},
       {"f32[n, 1]"},
       "f32[b, n, 3]"},
      {"broadcast_in_dim",
       {{"shape", Ints({3, 2})}, {"axes", Ints({1, 0})}},
       {"f32[2, 3]"},
       "`broadcast_in_dim`: attribute `axes` must ascend"},
      {"broadcast_in_dim",
       {{"shape", Ints({3, 2})}, {"axes", Ints({2})}},
       {"f32[2]"},
       "`broadcast_in_dim`: attribute `axes` holds axis 2, but the rank is 2"},
      {"reshape", {{"shape", Dims({D("2*n")})}}, {"f32[n, 2]"}, "f32[2*n]"},
      {"reshape",
       {{"shape", Dims({D("m")})}},
       {"f32[n, 2]"},
       "f32[m] if 2*n == m"},
      {"reshape",
       {{"shape", Ints({5})}},
       {"f32[2, 3]"},
       "`reshape`: the numbers of elements of [2, 3] and [5]: 6 == 5 does not "
       "hold"},
      {"reshape",
       {{"shape", 5}},
       {"f32[5]"},
       "`reshape`: attribute `shape` must be a list, not 5"},
      {"transpose", {{"axes", Ints({1, 0})}}, {"f32[n, 2]"}, "f32[2, n]"},
      {"transpose",
       {{"axes", Ints({1, 1})}},
       {"f32[n, 2]"},
       "`transpose`: attribute `axes` holds axis 1 twice"},
      {"transpose",
       {{"axes", Ints({0})}},
       {"f32[n, 2]"},
       "`transpose`: attribute `axes` must be a permutation of the axes of "
       "f32[n, 2]"},
      {"slice",
       {{"start", Ints({1})}, {"size", Ints({2})}, {"stride", Ints({3})}},
       {"f32[5]"},
       "f32[2]"},
      {"slice",
       {{"start", Ints({2})}, {"size", Ints({2})}, {"stride", Ints({3})}},
       {"f32[5]"},
       "`slice`: end on axis 0 of f32[5]: 6 <= 5 does not hold"},
      {"slice",
       {{"start", Ints({5})}, {"size", Ints({0})}, {"stride", Ints({2})}},
       {"f32[5]"},
       "f32[0]"},
      {"slice",
       {{"start", Ints({1})}, {"size", Dims({D("n")})}, {"stride", Ints({1})}},
       {"f32[m]"},
       "f32[n] if n + 1 <= m"},
      {"slice",
       {{"start", Ints({0})}, {"size", Ints({1})}, {"stride", Ints({0})}},
       {"f32[5]"},
       "`slice`: attribute `stride` holds 0, but must be at least 1"},
      {"reverse", {{"axes", Ints({0})}}, {"f32[n]"}, "f32[n]"},
      {"pad_general",
       {{"low", Ints({-1})}, {"high", Ints({2})}, {"interior", Ints({1})}},
       {"f32[3]", "f32"},
       "f32[6]"},
      {"pad_general",
       {{"low", Ints({-4})}, {"high", Ints({0})}, {"interior", Ints({0})}},
       {"f32[3]", "f32"},
       "`pad_general`: an extent of the result: -1 >= 0 does not hold"},
      {"pad_general",
       {{"low", Ints({1})}, {"high", Ints({0})}, {"interior", Ints({0})}},
       {"f32[3]", "f32[1]"},
       "`pad_general`: operand 1 is f32[1], but must have rank 0"},
      {"concatenate",
       {{"axis", 0}},
       {"f32[n, 2]", "f32[m, 2]"},
       "f32[m + n, 2]"},
      {"concatenate",
       {{"axis", 0}},
       {},
       "`concatenate`: needs at least one operand"},
      {"windows",
       {{"sizes", Ints({2})},
        {"strides", Ints({2})},
        {"dilations", Ints({1})},
        {"low", Ints({0})},
        {"counts", Dims({D("p")})}},
       {"f32[b, n]", "f32"},
       "f32[b, p, 2]"},
      {"windows_add",
       {{"sizes", Ints({2})},
        {"strides", Ints({2})},
        {"dilations", Ints({1})},
        {"low", Ints({0})},
        {"counts", Ints({3})},
        {"shape", Dims({D("n")})}},
       {"f32[b, 3, 2]"},
       "f32[b, n]"},
  });
}

TEST(InferType, ReductionsContractionsScans) {
  const Attributes conv = {
      {"stride", Ints({2})},       {"low", Ints({1})},
      {"high", Ints({1})},         {"lhs_dilation", Ints({1})},
      {"rhs_dilation", Ints({1})}, {"groups", 1},
      {"batch_groups", 1}};
  Attributes grouped = conv;
  grouped.Set("groups", 2);
  Attributes batch_grouped = conv;
  batch_grouped.Set("batch_groups", 2);
  Check({
      {"reduce_sum", {{"axes", Ints({0, 2})}}, {"f32[a, b, c]"}, "f32[b]"},
      {"reduce_sum",
       {{"axes", Ints({1, 0})}},
       {"f32[2, 3]"},
       "`reduce_sum`: attribute `axes` must ascend"},
      {"reduce_sum",
       {{"axes", Ints({-1})}},
       {"f32[2, 3]"},
       "`reduce_sum`: attribute `axes` holds -1, but must be at least 0"},
      {"reduce_all",
       {{"axes", Ints({0})}},
       {"i8[2]"},
       "`reduce_all`: operand 0 is i8[2], but must be bool"},
      {"argmax", {{"axes", Ints({})}}, {"f32[2]"}, "i64[2]"},
      {"dot_general",
       {{"batch_a", Ints({0})},
        {"batch_b", Ints({0})},
        {"contract_a", Ints({2})},
        {"contract_b", Ints({1})}},
       {"f32[b, n, k]", "f32[b, k, m]"},
       "f32[b, n, m]"},
      {"dot_general",
       {{"batch_a", Ints({})},
        {"batch_b", Ints({})},
        {"contract_a", Ints({0})},
        {"contract_b", Ints({0})}},
       {"f32[2]", "f32[3]"},
       "`dot_general`: contracted axes 0 of f32[2] and 0 of f32[3]: 2 == 3 "
       "does not hold"},
      {"dot_general",
       {{"batch_a", Ints({0})},
        {"batch_b", Ints({0})},
        {"contract_a", Ints({0})},
        {"contract_b", Ints({1})}},
       {"f32[2]", "f32[2, 2]"},
       "`dot_general`: axis 0 is in both `batch_a` and `contract_a`"},
      {"conv", conv, {"f32[n, 3, 8]", "f32[o, 3, 3]"}, "f32[n, o, 4]"},
      {"conv", grouped, {"f32[1, 6, 8]", "f32[4, 3, 3]"}, "f32[1, 4, 4]"},
      {"conv", batch_grouped, {"f32[6, 3, 8]", "f32[4, 3, 3]"}, "f32[3, 4, 4]"},
      {"conv",
       grouped,
       {"f32[1, 6, 8]", "f32[3, 3, 3]"},
       "`conv`: outputs divide into the groups: 1 == 0 does not hold"},
      {"conv",
       conv,
       {"f32[1, 6, 8]", "f32[3, 3, 3]"},
       "`conv`: channels of operand 0, and of operand 1 times groups: 6 == 3 "
       "does not hold"},
      {"linear_scan",
       {{"axis", 0}, {"reverse", false}},
       {"f32[n, 2]", "f32[n, 2]", "f32[2]"},
       "f32[n, 2]"},
      {"linear_scan",
       {{"axis", 0}, {"reverse", 1}},
       {"f32[n]", "f32[n]", "f32"},
       "`linear_scan`: attribute `reverse` must be a bool, not 1"},
      {"cumulative_max",
       {{"axis", 1}, {"reverse", true}},
       {"f32[2]"},
       "`cumulative_max`: attribute `axis` is 1, but the rank is 1"},
  });
}

TEST(InferType, IndexingAndRandomness) {
  const Attributes gather = {
      {"axes", Ints({1})}, {"batch", 1}, {"mode", "fill"}};
  Check({
      {"gather",
       gather,
       {"f32[b, n, c]", "i64[b, i, 1]", "f32"},
       "f32[b, i, c]"},
      {"gather",
       gather,
       {"f32[b, n, c]", "i32[b, i, 1]", "f32"},
       "`gather`: operand 1 is i32[b, i, 1], but must be i64"},
      {"gather",
       gather,
       {"f32[b, n, c]", "i64[b, i, 2]", "f32"},
       "`gather`: the last axis of operand 1 and the number of axes indexed: "
       "2 == 1 does not hold"},
      {"gather",
       {{"axes", Ints({0})}, {"batch", 1}, {"mode", "fill"}},
       {"f32[b, n]", "i64[b, 1]", "f32"},
       "`gather`: attribute `axes` holds axis 0, which is one of the 1 batch "
       "axes"},
      {"scatter",
       {{"axes", Ints({0})}, {"batch", 0}, {"mode", "add"}},
       {"f32[n, c]", "i64[i, 1]", "f32[i, c]"},
       "f32[n, c]"},
      {"scatter",
       {{"axes", Ints({0})}, {"batch", 0}, {"mode", "add"}},
       {"bool[n]", "i64[i, 1]", "bool[i]"},
       "`scatter`: operand 0 is bool[n], but its dtype must be of class "
       "number"},
      {"scatter",
       {{"axes", Ints({0})}, {"batch", 0}, {"mode", "sub"}},
       {"f32[n]", "i64[i, 1]", "f32[i]"},
       "`scatter`: attribute `mode` is \"sub\", but must be one of add, mul, "
       "max, min, set"},
      {"scatter",
       {{"axes", Ints({0})}, {"batch", 0}, {"mode", "max"}, {"tie", "first"}},
       {"f32[n]", "i64[i, 1]", "f32[i]"},
       "f32[n]"},
      {"scatter",
       {{"axes", Ints({0})}, {"batch", 0}, {"mode", "max"}, {"tie", "second"}},
       {"f32[n]", "i64[i, 1]", "f32[i]"},
       "`scatter`: attribute `tie` is \"second\", but must be one of even, "
       "first"},
      {"sort",
       {{"axis", 0}, {"descending", false}},
       {"f32[n]"},
       "f32[n] i64[n]"},
      {"nonzero", {{"size", D("k")}}, {"f32[n, 2]"}, "i64[k, 2]"},
      {"random_bits",
       {{"shape", Ints({2})}, {"dtype", DType::kU32}},
       {"key[b]"},
       "u32[b, 2]"},
      {"random_uniform",
       {{"shape", Ints({2})}, {"dtype", DType::kI32}},
       {"key"},
       "`random_uniform`: attribute `dtype` is i32, but must be a float"},
      {"random_split", {{"count", 3}}, {"key"}, "key[3]"},
      {"random_fold_in", {}, {"key[b, 2]", "i64[b, 2]"}, "key[b, 2]"},
      {"random_fold_in", {}, {"key[b]", "i64[c]"}, "key[b] if b == c"},
      {"random_fold_in",
       {},
       {"key[2]", "i64"},
       "`random_fold_in`: the operands: shapes [2] and [] differ in rank"},
      {"random_fold_in",
       {},
       {"key", "i32"},
       "`random_fold_in`: operand 1 is i32[], but must be i64"},
      {"random_fold_in",
       {},
       {"i64", "i64"},
       "`random_fold_in`: operand 0 is i64[], but must be key"},
      {"scan", {}, {}, "`scan`: is typed by its regions"},
      {"while", {}, {}, "`while`: is typed by its regions"},
      {"input", {}, {}, "`input`: has the type that it was declared with"},
  });
}

// No attribute of any kind crashes any primitive: each answers.
TEST(InferType, AnswersToMalformedAttributes) {
  const StaticValue values[] = {
      StaticValue(),
      StaticValue(true),
      StaticValue(-1),
      StaticValue(D("n")),
      StaticValue("text"),
      StaticValue(Exact::NaN()),
      StaticValue(DType::kKey),
      StaticValue(List{}),
      StaticValue(List{StaticValue("x")}),
      StaticValue(List{StaticValue(99), StaticValue(-7)}),
      StaticValue(StaticValue::Record{})};
  const char* names[] = {"value",   "dtype",      "size",  "index",  "tie",
                         "shape",   "axes",       "start", "stride", "low",
                         "high",    "interior",   "axis",  "sizes",  "strides",
                         "counts",  "dilations",  "mode",  "batch",  "count",
                         "reverse", "descending", "groups"};
  int answers = 0;
  for (int p = 0; p < kNumPrimitives; ++p) {
    const Primitive primitive = static_cast<Primitive>(p);
    for (const char* dtype : {"f32", "i64", "bool", "key"}) {
      for (int rank = 0; rank < 3; ++rank) {
        TensorType type = *ParseTensorType(dtype);
        type.shape.assign(rank, Dim(2));
        const int count = OperandCount(primitive);
        const std::vector<TensorType> operands(count < 0 ? 2 : count, type);
        for (const StaticValue& value : values) {
          Attributes attributes;
          for (const char* name : names) attributes.Set(name, value);
          // Every primitive lacks some of the names.
          EXPECT_FALSE(InferType(primitive, attributes, operands).ok());
          ++answers;
        }
        InferType(primitive, {}, operands).status().IgnoreError();
      }
    }
  }
  EXPECT_EQ(answers, kNumPrimitives * 4 * 3 * 11);
}

// Arithmetic on extents and attributes that overflows is an error.
TEST(InferType, RejectsHugeExtents) {
  const Dim huge = int64_t{1} << 62;
  const TensorType vector{DType::kF32, {huge}};
  const TensorType matrix{DType::kF32, {huge, 4}};
  const TensorType image{DType::kF32, {1, 1, huge}};
  const TensorType scalar{DType::kF32, {}};
  const StaticValue large = StaticValue::Dims({huge});
  const StaticValue none = StaticValue::Dims({0});
  const StaticValue one = StaticValue::Dims({1});
  struct {
    Primitive primitive;
    Attributes attributes;
    std::vector<TensorType> operands;
  } cases[] = {
      {Primitive::kReshape,
       {{"shape", StaticValue::Dims({4, huge})}},
       {matrix}},
      {Primitive::kReshape, {{"shape", StaticValue::Dims({2, 2})}}, {matrix}},
      {Primitive::kSlice,
       {{"start", large}, {"size", large}, {"stride", one}},
       {vector}},
      {Primitive::kSlice,
       {{"start", none}, {"size", large}, {"stride", large}},
       {vector}},
      {Primitive::kPad,
       {{"low", large}, {"high", large}, {"interior", none}},
       {vector, scalar}},
      {Primitive::kPad,
       {{"low", none}, {"high", none}, {"interior", large}},
       {vector, scalar}},
      {Primitive::kConcatenate, {{"axis", 0}}, {vector, vector, vector}},
      {Primitive::kConv,
       {{"stride", one},
        {"low", none},
        {"high", none},
        {"lhs_dilation", large},
        {"rhs_dilation", large},
        {"groups", 1},
        {"batch_groups", 1}},
       {image, image}},
  };
  for (const auto& c : cases) {
    const auto inferred = InferType(c.primitive, c.attributes, c.operands);
    EXPECT_EQ(inferred.status().code(), absl::StatusCode::kResourceExhausted)
        << PrimitiveName(c.primitive) << ": " << inferred.status();
  }
}

TEST(InferType, RefusesInvalidDimsWithTheirOwnStatus) {
  const Dim bad = Dim("n") / 0;
  const TensorType x{DType::kF32, {3}};
  const std::pair<Primitive, Attributes> nodes[] = {
      {Primitive::kReshape, {{"shape", StaticValue::Dims({bad})}}},
      {Primitive::kBroadcastInDim,
       {{"shape", StaticValue::Dims({bad, 3})},
        {"axes", StaticValue::Ints(std::vector<int>{1})}}},
      {Primitive::kSlice,
       {{"start", StaticValue::Dims({bad})},
        {"size", StaticValue::Dims({1})},
        {"stride", StaticValue::Ints(std::vector<int>{1})}}},
  };
  for (const auto& [primitive, attributes] : nodes) {
    EXPECT_EQ(InferType(primitive, attributes, {x}).status(), bad.status())
        << PrimitiveName(primitive);
  }
  EXPECT_EQ(InferType(Primitive::kNeg, {}, {{DType::kF32, {bad}}}).status(),
            bad.status());
  EXPECT_EQ(InferType(Primitive::kExtent, {{"value", bad}}, {}).status(),
            bad.status());
  EXPECT_EQ(NumElements({0, bad}).status(), bad.status());
  EXPECT_EQ(BroadcastShapes({{1}, {bad}}).status(), bad.status());
}

}  // namespace
}  // namespace cleave
