#include "transforms/testing/sample_nodes.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

StaticValue Ints(std::vector<int> values) { return StaticValue::Ints(values); }

StaticValue Dims(std::vector<Dim> values) { return StaticValue::Dims(values); }

// c' = c * k + x, y = sin(c') beside a count: consts k, carries c, n, xs x.
Region LoopBody(const std::shared_ptr<Context>& context) {
  GraphBuilder b(context);
  const TensorType type{DType::kF64, {2}};
  const Value k = b.Input("k", type);
  const Value c = b.Input("c", type);
  const Value n = b.Input("n", {DType::kI64, {}});
  const Value x = b.Input("x", type);
  const Value next = emit::Add(b, emit::Mul(b, c, k), x);
  const Value count = emit::Add(b, n, b.Constant(1, DType::kI64));
  const Value y = b.Apply(Primitive::kSin, {next});
  return MakeRegion(
      *std::move(b).Build({{"c", next}, {"n", count}, {"y", y}, {"m", n}}));
}

// A loop's condition, n < 3, and body, (c, n) -> (sin(c k), n + 1).
Region LoopCondition(const std::shared_ptr<Context>& context) {
  GraphBuilder b(context);
  b.Input("k", {DType::kF64, {2}});
  b.Input("c", {DType::kF64, {2}});
  const Value n = b.Input("n", {DType::kI64, {}});
  const Value goes_on =
      b.Apply(Primitive::kLt, {n, b.Constant(3, DType::kI64)});
  return MakeRegion(*std::move(b).Build({{"p", goes_on}}));
}

Region LoopStep(const std::shared_ptr<Context>& context) {
  GraphBuilder b(context);
  const TensorType type{DType::kF64, {2}};
  const Value k = b.Input("k", type);
  const Value c = b.Input("c", type);
  const Value n = b.Input("n", {DType::kI64, {}});
  const Value next = b.Apply(Primitive::kSin, {emit::Mul(b, c, k)});
  const Value count = emit::Add(b, n, b.Constant(1, DType::kI64));
  return MakeRegion(*std::move(b).Build({{"c", next}, {"n", count}}));
}

// The then branch gives (a b, a), the else branch (sin a, b).
Region Branch(const std::shared_ptr<Context>& context, bool is_then) {
  GraphBuilder builder(context);
  const TensorType type{DType::kF64, {2}};
  const Value a = builder.Input("a", type);
  const Value b = builder.Input("b", type);
  if (is_then) {
    const Value product = emit::Mul(builder, a, b);
    return MakeRegion(*std::move(builder).Build({{"u", product}, {"v", a}}));
  }
  const Value sine = builder.Apply(Primitive::kSin, {a});
  return MakeRegion(*std::move(builder).Build({{"u", sine}, {"v", b}}));
}

// Where a pointwise primitive is drawn from, if not from [-2, 2] and [1, 9].
struct Domain {
  Primitive primitive;
  double low;
  double high;
};
constexpr Domain kDomains[] = {
    {Primitive::kLog, 0.1, 3},      {Primitive::kLog1p, -0.9, 2},
    {Primitive::kSqrt, 0.1, 3},     {Primitive::kRsqrt, 0.1, 3},
    {Primitive::kTan, -1.4, 1.4},   {Primitive::kAsin, -0.9, 0.9},
    {Primitive::kAcos, -0.9, 0.9},  {Primitive::kAcosh, 1.1, 3},
    {Primitive::kAtanh, -0.9, 0.9}, {Primitive::kErfinv, -0.9, 0.9},
    {Primitive::kLgamma, 0.3, 4},   {Primitive::kDiv, 0.5, 2},
    {Primitive::kRem, 0.3, 5},      {Primitive::kPow, 0.2, 3},
    {Primitive::kPolygamma, 1, 1},
};

// An operand of f64 where the primitive takes that.
std::string SampleType(const PrimitiveOperand& operand) {
  for (const DType dtype :
       {DType::kF64, DType::kI32, DType::kBool, DType::kC128}) {
    if (operand.Takes(dtype)) return absl::StrCat(DTypeName(dtype), "[3]");
  }
  CLEAVE_CHECK(false) << operand.name;
  return "";
}

void AddPointwise(std::vector<SampleNode>& samples) {
  const std::string f = "f64[3]";
  for (int i = 0; i < kNumPrimitives; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    if (ClassOf(primitive) != PrimitiveClass::kPointwise ||
        !AttributesOf(primitive).empty()) {
      continue;
    }
    SampleNode sample{std::string(PrimitiveName(primitive)), primitive, {}, {}};
    for (const PrimitiveOperand& operand : OperandsOf(primitive)) {
      sample.operands.push_back(operand.dtypes.empty() ? sample.operands.back()
                                                       : SampleType(operand));
    }
    // No division by 0, and no shift by less.
    if (sample.operands.back() == "i32[3]") {
      sample.int_low = 1;
      sample.int_high = 9;
    }
    for (const Domain& domain : kDomains) {
      if (domain.primitive != primitive) continue;
      sample.low = domain.low;
      sample.high = domain.high;
    }
    samples.push_back(std::move(sample));
  }
  samples.push_back(
      {"convert", Primitive::kConvert, {f}, {{"dtype", DType::kF32}}});
  samples.push_back(
      {"convert/int", Primitive::kConvert, {f}, {{"dtype", DType::kI32}}});
  samples.push_back({"bitcast_convert",
                     Primitive::kBitcastConvert,
                     {f},
                     {{"dtype", DType::kI64}}});
  for (Primitive primitive : {Primitive::kMax, Primitive::kMin}) {
    for (const char* tie : {"even", "first", "second"}) {
      samples.push_back({absl::StrCat(PrimitiveName(primitive), "/", tie),
                         primitive,
                         {f, f},
                         {{"tie", tie}}});
    }
  }
}

void AddMovement(std::vector<SampleNode>& samples) {
  samples.push_back({"broadcast_in_dim",
                     Primitive::kBroadcastInDim,
                     {"f64[2, 1]"},
                     {{"shape", Dims({2, 4, 3})}, {"axes", Ints({0, 2})}}});
  samples.push_back({"reshape",
                     Primitive::kReshape,
                     {"f64[2, 6]"},
                     {{"shape", Dims({3, 4})}}});
  samples.push_back({"transpose",
                     Primitive::kTranspose,
                     {"f64[2, 3, 4]"},
                     {{"axes", Ints({2, 0, 1})}}});
  samples.push_back({"slice",
                     Primitive::kSlice,
                     {"f64[5, 3]"},
                     {{"start", Dims({1, 0})},
                      {"size", Dims({2, 2})},
                      {"stride", Ints({2, 1})}}});
  samples.push_back(
      {"reverse", Primitive::kReverse, {"f64[2, 3]"}, {{"axes", Ints({1})}}});
  samples.push_back({"pad_general",
                     Primitive::kPad,
                     {"f64[3, 2]", "f64[]"},
                     {{"low", Dims({1, -1})},
                      {"high", Dims({0, 2})},
                      {"interior", Dims({1, 0})}}});
  samples.push_back({"concatenate",
                     Primitive::kConcatenate,
                     {"f64[2, 1]", "f64[2, 3]", "f64[2, 2]"},
                     {{"axis", 1}}});
  const Attributes windows = {{"sizes", Dims({2, 3})},
                              {"strides", Ints({2, 1})},
                              {"dilations", Ints({1, 2})},
                              {"low", Dims({1, 0})},
                              {"counts", Dims({2, 2})}};
  samples.push_back(
      {"windows", Primitive::kWindows, {"f64[2, 4, 5]", "f64[]"}, windows});
  Attributes add = windows;
  add.Set("shape", Dims({4, 5}));
  samples.push_back(
      {"windows_add", Primitive::kWindowsAdd, {"f64[2, 2, 2, 2, 3]"}, add});
}

void AddReductions(std::vector<SampleNode>& samples) {
  const Attributes axes = {{"axes", Ints({0, 2})}};
  const std::string x = "f64[2, 3, 2]";
  for (Primitive primitive :
       {Primitive::kReduceSum, Primitive::kReduceProd, Primitive::kReduceMax,
        Primitive::kReduceMin, Primitive::kArgmax, Primitive::kArgmin}) {
    samples.push_back(
        {std::string(PrimitiveName(primitive)), primitive, {x}, axes});
  }
  for (Primitive primitive : {Primitive::kReduceAll, Primitive::kReduceAny}) {
    samples.push_back({std::string(PrimitiveName(primitive)),
                       primitive,
                       {"bool[2, 3, 2]"},
                       axes});
  }
  for (Primitive primitive : {Primitive::kReduceMax, Primitive::kReduceMin}) {
    samples.push_back({absl::StrCat(PrimitiveName(primitive), "/first"),
                       primitive,
                       {x},
                       {{"axes", Ints({0, 2})}, {"tie", "first"}}});
  }
  samples.push_back({"reduce_prod/zeros", Primitive::kReduceProd, {x}, axes});
  samples.back().ties = true;
}

void AddContractions(std::vector<SampleNode>& samples) {
  samples.push_back({"dot_general",
                     Primitive::kDotGeneral,
                     {"f64[2, 3, 4]", "f64[4, 5, 2]"},
                     {{"batch_a", Ints({0})},
                      {"batch_b", Ints({2})},
                      {"contract_a", Ints({2})},
                      {"contract_b", Ints({0})}}});
  samples.push_back({"dot_general/matmul",
                     Primitive::kDotGeneral,
                     {"f64[2, 3]", "f64[3, 4]"},
                     {{"batch_a", Ints({})},
                      {"batch_b", Ints({})},
                      {"contract_a", Ints({1})},
                      {"contract_b", Ints({0})}}});
  const auto conv = [](int groups, int batch_groups) {
    return Attributes{
        {"stride", Ints({2})},         {"low", Dims({1})},
        {"high", Dims({0})},           {"lhs_dilation", Ints({2})},
        {"rhs_dilation", Ints({1})},   {"groups", groups},
        {"batch_groups", batch_groups}};
  };
  samples.push_back(
      {"conv", Primitive::kConv, {"f64[2, 3, 4]", "f64[4, 3, 2]"}, conv(1, 1)});
  samples.push_back({"conv/groups",
                     Primitive::kConv,
                     {"f64[2, 4, 4]", "f64[6, 2, 2]"},
                     conv(2, 1)});
  samples.push_back({"conv/batch_groups",
                     Primitive::kConv,
                     {"f64[4, 3, 4]", "f64[6, 3, 2]"},
                     conv(1, 2)});
}

void AddScans(std::vector<SampleNode>& samples) {
  for (bool reverse : {false, true}) {
    const Attributes along = {{"axis", 1}, {"reverse", reverse}};
    const std::string suffix = reverse ? "/reverse" : "";
    samples.push_back({absl::StrCat("linear_scan", suffix),
                       Primitive::kLinearScan,
                       {"f64[2, 4, 2]", "f64[2, 4, 2]", "f64[2, 2]"},
                       along});
    for (Primitive primitive :
         {Primitive::kCumulativeMax, Primitive::kCumulativeMin}) {
      samples.push_back({absl::StrCat(PrimitiveName(primitive), suffix),
                         primitive,
                         {"f64[2, 5]"},
                         along});
    }
  }
}

void AddIndexing(std::vector<SampleNode>& samples) {
  // x is [2, 3, 4], index [2, 3, k]; the axes indexed are 1, or 1 and 2.
  const auto along = [](std::vector<int> axes, int batch, const char* mode) {
    return Attributes{
        {"axes", Ints(std::move(axes))}, {"batch", batch}, {"mode", mode}};
  };
  samples.push_back({"gather",
                     Primitive::kGather,
                     {"f64[2, 3, 4]", "i64[5, 1]", "f64[]"},
                     along({1}, 0, "fill")});
  samples.push_back({"gather/batch",
                     Primitive::kGather,
                     {"f64[2, 3, 4]", "i64[2, 5, 1]", "f64[]"},
                     along({1}, 1, "fill")});
  samples.push_back({"gather/two_axes",
                     Primitive::kGather,
                     {"f64[2, 3, 4]", "i64[5, 2]", "f64[]"},
                     along({0, 2}, 0, "fill")});
  samples.push_back({"gather/error",
                     Primitive::kGather,
                     {"f64[2, 3, 4]", "i64[5, 1]", "f64[]"},
                     along({1}, 0, "error")});
  samples.back().int_low = 0;
  samples.back().int_high = 2;
  for (const char* mode : {"add", "mul", "max", "min", "set"}) {
    samples.push_back({absl::StrCat("scatter/", mode),
                       Primitive::kScatter,
                       {"f64[2, 3, 4]", "i64[5, 1]", "f64[5, 2, 4]"},
                       along({1}, 0, mode)});
    samples.push_back({absl::StrCat("scatter/", mode, "/batch"),
                       Primitive::kScatter,
                       {"f64[2, 3, 4]", "i64[2, 5, 2]", "f64[2, 5]"},
                       along({1, 2}, 1, mode)});
  }
  samples.push_back({"scatter/mul/zeros",
                     Primitive::kScatter,
                     {"f64[2, 3]", "i64[4, 1]", "f64[4, 3]"},
                     along({0}, 0, "mul")});
  samples.back().ties = true;
  samples.push_back({"sort",
                     Primitive::kSort,
                     {"f64[3, 4]"},
                     {{"axis", 0}, {"descending", false}}});
  samples.push_back({"sort/descending",
                     Primitive::kSort,
                     {"f64[3, 4]"},
                     {{"axis", 1}, {"descending", true}}});
  samples.push_back({"nonzero",
                     Primitive::kNonzero,
                     {"bool[4]"},
                     {{"size", Dim::Variable("count")}}});
}

void AddRandom(std::vector<SampleNode>& samples) {
  samples.push_back({"random_bits",
                     Primitive::kRandomBits,
                     {"key[]"},
                     {{"shape", Dims({2, 3})}, {"dtype", DType::kU32}}});
  samples.push_back({"random_uniform",
                     Primitive::kRandomUniform,
                     {"key[2]"},
                     {{"shape", Dims({3})}, {"dtype", DType::kF32}}});
  samples.push_back({"random_split",
                     Primitive::kRandomSplit,
                     {"key[]"},
                     {{"count", Dim(3)}}});
  samples.push_back(
      {"random_fold_in", Primitive::kRandomFoldIn, {"key[2]", "i64[2]"}, {}});
}

void AddControl(std::vector<SampleNode>& samples,
                const std::shared_ptr<Context>& context) {
  for (bool reverse : {false, true}) {
    samples.push_back({reverse ? "scan/reverse" : "scan",
                       Primitive::kScan,
                       {"f64[2]", "f64[2]", "i64[]", "f64[3, 2]"},
                       {{"body", LoopBody(context)},
                        {"consts", 1},
                        {"carries", 2},
                        {"length", Dim(3)},
                        {"reverse", reverse}}});
  }
  samples.push_back(
      {"cond",
       Primitive::kCond,
       {"bool[]", "f64[2]", "f64[2]"},
       {{"then", Branch(context, true)}, {"else", Branch(context, false)}}});
  for (bool bounded : {true, false}) {
    samples.push_back({bounded ? "while" : "while/unbounded",
                       Primitive::kWhile,
                       {"f64[2]", "f64[2]", "i64[]"},
                       {{"cond", LoopCondition(context)},
                        {"body", LoopStep(context)},
                        {"consts", 1}}});
    if (bounded) samples.back().attributes.Set("max", Dim(4));
  }
}

}  // namespace

std::vector<SampleNode> SampleNodes(const std::shared_ptr<Context>& context) {
  std::vector<SampleNode> samples;
  AddPointwise(samples);
  AddMovement(samples);
  AddReductions(samples);
  AddContractions(samples);
  AddScans(samples);
  AddIndexing(samples);
  AddRandom(samples);
  AddControl(samples, context);
  return samples;
}

absl::StatusOr<Graph> SampleGraph(const SampleNode& sample,
                                  const std::shared_ptr<Context>& context,
                                  DType dtype) {
  GraphBuilder b(context);
  std::vector<Value> operands;
  for (const std::string& text : sample.operands) {
    CLEAVE_ASSIGN_OR_RETURN(TensorType type, ParseTensorType(text));
    if (type.dtype == DType::kF64) type.dtype = dtype;
    operands.push_back(b.Input(absl::StrCat("x", operands.size()), type));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value node,
                          b.Add(sample.primitive, sample.attributes, operands));
  std::vector<NamedValue> outputs;
  const int count = static_cast<int>(b.graph().types(node).size());
  for (int i = 0; i < count; ++i) {
    outputs.push_back({absl::StrCat("y", i), b.Result(node, i)});
  }
  return *std::move(b).Build(std::move(outputs));
}

std::vector<int64_t> ConstantShape(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) {
    const std::optional<int64_t> extent = d.Value();
    CLEAVE_CHECK(extent.has_value()) << "`" << d.ToString() << "` is symbolic";
    shape.push_back(*extent);
  }
  return shape;
}

Tensor DrawTensor(const SampleNode& sample, DType dtype,
                  const std::vector<int64_t>& shape, std::mt19937_64& random) {
  Tensor tensor(dtype, shape);
  std::uniform_real_distribution<double> real(sample.low, sample.high);
  std::uniform_int_distribution<int64_t> integer(sample.int_low,
                                                 sample.int_high);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (KindOf(dtype)) {
      case DTypeKind::kBool:
        tensor.SetInt(i, static_cast<int64_t>(random() & 1));
        break;
      case DTypeKind::kInt:
        tensor.SetInt(i, integer(random));
        break;
      case DTypeKind::kFloat:
        tensor.SetDouble(i, sample.ties ? static_cast<double>(random() % 3) - 1
                                        : real(random));
        break;
      case DTypeKind::kComplex:
        tensor.SetComplex(i, {real(random), real(random)});
        break;
      case DTypeKind::kKey:
        tensor.SetInt(i, static_cast<int64_t>(random() >> 1));
        break;
    }
  }
  return tensor;
}

bool IsOverTheReals(Primitive primitive) {
  switch (primitive) {
    case Primitive::kNextafter:
    case Primitive::kBitcastConvert:
    case Primitive::kComplex:
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kRandomUniform:
    case Primitive::kRandomBits:
      return false;
    default:
      return true;
  }
}

}  // namespace cleave
