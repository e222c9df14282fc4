// A numeric has the same bits in a compiled kernel, at every level of vector
// instructions, as in the interpreter.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/codegen/numerics.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/ir/interpreter.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/tensor.h"
#include "testing/check/samples/float_points.h"
#include "testing/numerics/numeric_call.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

const RuleSet& Rules() {
  static const auto* rules = [] {
    const auto sources = ReadRuleFiles({"rules"});
    CLEAVE_CHECK(sources.ok()) << sources.status();
    LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
    CLEAVE_CHECK(loaded.rules != nullptr) << loaded.diagnostics[0];
    return new std::shared_ptr<const RuleSet>(std::move(loaded.rules));
  }();
  return **rules;
}

// Special values, and values all over the range, in an order of its own for
// each operand.
Tensor Points(DType dtype, int operand) {
  std::mt19937_64 random(operand);
  std::vector<double> points = SpecialValues(dtype);
  for (const double v : UlpUniformGrid(dtype, 3000, random)) {
    points.push_back(v);
  }
  std::uniform_real_distribution<double> middle(-12, 12);
  for (int i = 0; i < 3000; ++i) {
    points.push_back(RoundToDType(middle(random), dtype));
  }
  if (operand > 0) std::shuffle(points.begin(), points.end(), random);
  return Tensor::FromDoubles(dtype, {static_cast<int64_t>(points.size())},
                             points);
}

// Each primitive once, that has a numeric of several dtypes, too.
std::set<std::string> NumericNames() {
  const std::vector<std::string> names = Rules().Names(ItemKind::kNumeric);
  return std::set<std::string>(names.begin(), names.end());
}

class KernelBits : public testing::TestWithParam<std::string> {};

TEST_P(KernelBits, AreThoseOfTheInterpreter) {
  const Primitive primitive = *FindPrimitive(GetParam());
  std::vector<DType> dtypes = {DType::kF32, DType::kBF16};
  ASSERT_OK_AND_ASSIGN(const NumericBody* wide,
                       Rules().Numeric(primitive, DType::kF64));
  if (wide != nullptr) dtypes.push_back(DType::kF64);
  for (const DType dtype : dtypes) {
    for (const NumericCall& call :
         NumericCalls(primitive, dtype, Rules().context())) {
      const Graph& graph = call.graph;
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < graph.inputs().size(); ++i) {
        inputs.push_back(Points(dtype, static_cast<int>(i)));
      }
      ASSERT_OK_AND_ASSIGN(const Graph arithmetic,
                           ApplyNumerics(graph, Rules()));
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                           Interpret(arithmetic, inputs));
      for (const TargetLevel level : HostLevels()) {
        CompileOptions options;
        options.level = level;
        ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                             Compile(graph, Rules(), options));
        EXPECT_EQ(kernel.reference_groups(), 0);
        ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, kernel.Run(inputs));
        const int bytes = ByteSize(dtype);
        for (int64_t i = 0; i < got[0].size(); ++i) {
          const double a = got[0].GetDouble(i);
          const double b = expected[0].GetDouble(i);
          if (std::isnan(a) && std::isnan(b)) continue;
          ASSERT_EQ(std::memcmp(got[0].data() + i * bytes,
                                expected[0].data() + i * bytes, bytes),
                    0)
              << DTypeName(dtype) << " " << TargetLevelName(level) << " at "
              << FloatToString(inputs[0].GetDouble(i), dtype) << ": "
              << FloatToString(a, dtype) << ", not " << FloatToString(b, dtype);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelBits, testing::ValuesIn(NumericNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cleave
