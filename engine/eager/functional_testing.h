// A session with the shipped rules, and short ways to make and compare tensors,
// for the tests of this folder.

#ifndef CLEAVE_ENGINE_EAGER_FUNCTIONAL_TESTING_H_
#define CLEAVE_ENGINE_EAGER_FUNCTIONAL_TESTING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/eager/session.h"
#include "engine/eager/tensor.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel_cache.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"
#include "transforms/testing/test_rules.h"

namespace cleave::functional {

// Loaded once for all tests of a program, which have one thread.
inline const std::shared_ptr<const RuleSet>& SharedRules() {
  static const auto* const rules = new std::shared_ptr<const RuleSet>(
      LoadTestRules(std::make_shared<Context>(), "", {"core", "numerics"}));
  return *rules;
}

inline Tensor Floats(std::vector<int64_t> shape,
                     const std::vector<double>& values) {
  return cleave::Tensor::FromDoubles(DType::kF32, std::move(shape), values);
}
inline Tensor Ints(std::vector<int64_t> shape,
                   const std::vector<int64_t>& values) {
  return cleave::Tensor::FromInts(DType::kI64, std::move(shape), values);
}
inline Tensor Bools(std::vector<int64_t> shape,
                    const std::vector<int64_t>& values) {
  return cleave::Tensor::FromInts(DType::kBool, std::move(shape), values);
}

// Same dtype, shape and bits.
inline void ExpectValue(const Tensor& x, const Tensor& expected) {
  ASSERT_OK_AND_ASSIGN(const cleave::Tensor value, x.Concrete());
  ASSERT_OK_AND_ASSIGN(const cleave::Tensor wanted, expected.Concrete());
  EXPECT_TRUE(SameValue(value, wanted))
      << value.ToString() << " is not " << wanted.ToString();
}

// Kernels are kept in memory, for the program: what a test counts does not
// depend on the machine's cache.
inline KernelCache& TestKernelCache() {
  static KernelCache* const cache = new KernelCache(KernelCacheOptions{});
  return *cache;
}

class SessionTest : public ::testing::Test {
 protected:
  static SessionOptions Options() {
    SessionOptions options;
    options.cache = &TestKernelCache();
    return options;
  }

  Session session_{SharedRules(), Options()};
  SessionScope scope_{session_};
};

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_FUNCTIONAL_TESTING_H_
