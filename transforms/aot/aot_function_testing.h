// Rules, compilers and comparisons that the tests of AotFunction share.

#ifndef CLEAVE_TRANSFORMS_AOT_AOT_FUNCTION_TESTING_H_
#define CLEAVE_TRANSFORMS_AOT_AOT_FUNCTION_TESTING_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "engine/eager/session.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/testing/test_rules.h"

namespace cleave::aot {

inline functional::Tensor Sin(const functional::Tensor& x) {
  return functional::CallOne("sin", {x});
}
inline functional::Tensor Cos(const functional::Tensor& x) {
  return functional::CallOne("cos", {x});
}

// f64[n] of these values; 1, 2, .., n.
inline functional::Tensor Vector(const std::vector<double>& values) {
  return cleave::Tensor::FromDoubles(
      DType::kF64, {static_cast<int64_t>(values.size())}, values);
}
inline functional::Tensor Iota(int64_t n) {
  std::vector<double> values;
  for (int64_t i = 1; i <= n; ++i) values.push_back(static_cast<double>(i));
  return Vector(values);
}

// The same numbers as f64[rows, columns].
inline functional::Tensor Matrix(int64_t rows, int64_t columns) {
  return Iota(rows * columns).Reshape({Dim(rows), Dim(columns)}).Clone();
}

inline functional::Tensor Leaf(const Tree& tree) {
  EXPECT_EQ(tree.leaves().size(), 1);
  return tree.leaves().front();
}

inline void ExpectEqual(const functional::Tensor& have,
                        const functional::Tensor& want) {
  const absl::StatusOr<cleave::Tensor> a = have.Concrete();
  const absl::StatusOr<cleave::Tensor> b = want.Concrete();
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_TRUE(SameValue(*a, *b)) << a->ToString() << "\n" << b->ToString();
}

// The same for sines: those of the interpreter are the C library's, those of
// kernels the numerics'.
inline void ExpectNear(const functional::Tensor& have,
                       const functional::Tensor& want) {
  const absl::StatusOr<cleave::Tensor> a = have.Concrete();
  const absl::StatusOr<cleave::Tensor> b = want.Concrete();
  ASSERT_OK(a);
  ASSERT_OK(b);
  ASSERT_EQ(a->type(), b->type());
  constexpr double kFewUlp = 1e-15;
  for (int64_t i = 0; i < a->size(); ++i) {
    EXPECT_NEAR(a->GetDouble(i), b->GetDouble(i),
                kFewUlp * std::abs(b->GetDouble(i)))
        << a->ToString() << "\n"
        << b->ToString();
  }
}

// The shipped core rules, loaded once, and a session for eager ops.
class AotFunctionTesting : public ::testing::Test {
 public:
  static std::shared_ptr<const RuleSet> rules() {
    static const auto* rules = new std::shared_ptr<const RuleSet>(
        LoadTestRules(std::make_shared<Context>(), "", {"core", "numerics"}));
    return *rules;
  }

 protected:
  AotFunctionTesting() : session_(rules()), scope_(session_) {}

  static GraphCompiler Interpreting() { return InterpretCompiler(rules()); }

  // Interprets, and notes its name and the half that it was given.
  static GraphCompiler Spy(const std::string& name,
                           std::vector<std::string>* seen) {
    return [name, seen, next = Interpreting()](const Graph& graph,
                                               const ExampleInputs& examples) {
      seen->push_back(absl::StrCat(name, " ", HalfName(examples.half)));
      return next(graph, examples);
    };
  }

 private:
  functional::Session session_;
  functional::SessionScope scope_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_AOT_FUNCTION_TESTING_H_
