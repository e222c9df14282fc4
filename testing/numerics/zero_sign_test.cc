// A negative zero among the attributes of a call, or written in a rule, is one
// in the tensors, too: in the interpreter as in kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cache.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

constexpr char kRules[] = R"(language 1

op signed_by(x: T[S..], *, by: real = -0.0) -> T[S..]
  where T: float
  = copysign(x, by)

op signed_as(x: T[S..], *, how: {literal, exponent, integer, product, minus,
    doubled, twice_minus, rooted, greater, lesser, condition},
    by: real = -0.0) -> T[S..]
  where T: float
{
  if how == "literal" then copysign(x, -0.0)
  else if how == "exponent" then copysign(x, -0e3)
  else if how == "integer" then copysign(x, -0)
  else if how == "product" then copysign(x, 0.0 * -5)
  else if how == "minus" then copysign(x, -by)
  else if how == "doubled" then copysign(x, by + by)
  else if how == "twice_minus" then copysign(x, 0 - by)
  else if how == "rooted" then copysign(x, sqrt(by))
  else if how == "greater" then copysign(x, max(0, by))
  else if how == "lesser" then copysign(x, min(0, by))
  else if by == 0 then -x
  else x
}

op total_beyond(x: T[n], w: T[k]) -> T[n]
  where T: float
{
  y[i] = sum[j]((x[i + j + n] ?? -0.0) * w[j])
}
)";

const RuleSet& Rules() {
  static const auto* const rules =
      new std::shared_ptr<const RuleSet>(LoadTestRules(
          std::make_shared<Context>(), kRules, {"core", "aten", "numerics"}));
  return **rules;
}

// One for all calls: no two that differ in a sign may share a kernel.
KernelCache& Cache() {
  static auto* const cache = new KernelCache(KernelCacheOptions{});
  return *cache;
}

Tensor F32(const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF32, {static_cast<int64_t>(values.size())},
                             values);
}

// The result of a call, which the interpreter and a kernel agree on.
Tensor ResultOf(const std::string& op, const std::vector<Tensor>& inputs,
                const Attributes& attributes) {
  GraphBuilder builder(Rules().context());
  std::vector<Argument> arguments;
  for (const Tensor& input : inputs) {
    arguments.push_back(
        {"", builder.Input(absl::StrCat("x", arguments.size()), input.type())});
  }
  const auto results = Rules().Call(builder, op, arguments, attributes);
  EXPECT_OK(results);
  if (!results.ok()) return Tensor();
  const auto graph = std::move(builder).Build({{"y", *(*results)[0]}});
  EXPECT_OK(graph);
  if (!graph.ok()) return Tensor();
  const auto expanded = Expand(*graph, Rules());
  EXPECT_OK(expanded);
  if (!expanded.ok()) return Tensor();
  const auto value = Interpret(*expanded, inputs);
  EXPECT_OK(value);
  CompileOptions options;
  options.cache = &Cache();
  const auto kernel = Compile(*expanded, Rules(), options);
  EXPECT_OK(kernel);
  if (!value.ok() || !kernel.ok()) return Tensor();
  EXPECT_EQ(kernel->reference_groups(), 0);
  const auto computed = kernel->Run(inputs);
  EXPECT_OK(computed);
  if (!computed.ok()) return Tensor();
  EXPECT_TRUE(SameValue((*computed)[0], (*value)[0]))
      << "the kernel gives " << (*computed)[0].ToString()
      << ", the interpreter " << (*value)[0].ToString();
  return (*value)[0];
}

struct Case {
  std::string op;
  std::vector<Tensor> inputs;
  std::string attribute;  // that is a zero
  Attributes others;
  std::vector<double> with_negative_zero;
  std::vector<double> with_zero;
};

TEST(ZeroSign, OfAnAttributeStays) {
  const double inf = HUGE_VAL;
  const Tensor x = F32({1, -2});
  const Tensor mask = Tensor::FromInts(DType::kBool, {2}, {1, 0});
  const StaticValue size = StaticValue::Ints(std::vector<int>{2});
  const Case cases[] = {
      {"copysign.Scalar", {x}, "other", {}, {-1, -2}, {1, 2}},
      {"div.Scalar", {x}, "other", {}, {-inf, inf}, {inf, -inf}},
      {"add.Scalar", {F32({-0.0, 3})}, "other", {}, {-0.0, 3}, {0, 3}},
      {"mul.Scalar", {x}, "other", {}, {-0.0, 0}, {0, -0.0}},
      {"full",
       {},
       "fill_value",
       {{"size", size}, {"dtype", DType::kF32}},
       {-0.0, -0.0},
       {0, 0}},
      {"full_like", {x}, "fill_value", {}, {-0.0, -0.0}, {0, 0}},
      {"clamp", {F32({-1, -0.0})}, "min", {}, {-0.0, -0.0}, {0, 0}},
      {"hardtanh", {x}, "min_val", {{"max_val", Exact(1)}}, {1, -0.0}, {1, 0}},
      {"masked_fill.Scalar", {x, mask}, "value", {}, {-0.0, -2}, {0, -2}},
      {"where.ScalarOther", {mask, x}, "other", {}, {1, -0.0}, {1, 0}},
      {"constant_pad_nd",
       {x},
       "value",
       {{"pad", StaticValue::Ints(std::vector<int>{1, 0})}},
       {-0.0, 1, -2},
       {0, 1, -2}},
      {"threshold", {x}, "value", {{"threshold", Exact(0)}}, {1, -0.0}, {1, 0}},
      {"nan_to_num", {F32({NAN, 1})}, "nan", {}, {-0.0, 1}, {0, 1}}};
  for (const Case& one : cases) {
    for (const bool negative : {false, true, false}) {
      SCOPED_TRACE(absl::StrCat(one.op, negative ? " of -0.0" : " of 0.0"));
      Attributes attributes = one.others;
      attributes.Set(one.attribute, Exact::FromDouble(negative ? -0.0 : 0.0));
      const Tensor want =
          F32(negative ? one.with_negative_zero : one.with_zero);
      const Tensor got =
          ResultOf(absl::StrCat("aten.", one.op), one.inputs, attributes);
      EXPECT_TRUE(SameValue(got, want))
          << got.ToString() << " is not " << want.ToString();
    }
  }
}

TEST(ZeroSign, IntegersHaveNone) {
  const Tensor ones = Tensor::FromInts(DType::kI64, {2}, {1, 1});
  EXPECT_TRUE(SameValue(ResultOf("aten.full_like", {ones},
                                 {{"fill_value", Exact::FromDouble(-0.0)}}),
                        Tensor::FromInts(DType::kI64, {2}, {0, 0})));
}

TEST(ZeroSign, OfALiteralIsThatOfANumberThatIsGiven) {
  const std::pair<const char*, double> kSigns[] = {
      {"literal", -1}, {"exponent", -1}, {"integer", 1},     {"product", 1},
      {"minus", 1},    {"doubled", -1},  {"twice_minus", 1}, {"rooted", -1},
      {"greater", 1},  {"lesser", -1},   {"condition", -1}};
  for (const auto& [how, sign] : kSigns) {
    SCOPED_TRACE(how);
    const Tensor got = ResultOf("signed_as", {F32({1, 2})}, {{"how", how}});
    EXPECT_TRUE(SameValue(got, F32({sign, 2 * sign}))) << got.ToString();
  }
  EXPECT_TRUE(SameValue(ResultOf("signed_by", {F32({1})}, {}), F32({-1})));
  EXPECT_TRUE(SameValue(ResultOf("signed_by", {F32({1})}, {{"by", Exact(0)}}),
                        F32({1})));
}

// A sum begins with +0.
TEST(ZeroSign, OfAFillIsLostInASum) {
  EXPECT_TRUE(SameValue(ResultOf("total_beyond", {F32({1, 2}), F32({1})}, {}),
                        F32({0, 0})));
}

}  // namespace
}  // namespace cleave
