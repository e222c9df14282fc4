#include <gmp.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "gtest/gtest.h"
#include "ops/exact.h"
#include "ops/reference/real.h"

namespace cleave {
namespace {

// The bytes that MPFR and GMP hold.
std::atomic<int64_t> held{0};

void* Allocate(size_t bytes) {
  held += static_cast<int64_t>(bytes);
  return std::malloc(bytes);
}
void* Reallocate(void* address, size_t before, size_t after) {
  held += static_cast<int64_t>(after) - static_cast<int64_t>(before);
  return std::realloc(address, after);
}
void Free(void* address, size_t bytes) {
  held -= static_cast<int64_t>(bytes);
  std::free(address);
}

class MpfrThread : public testing::Test {
 protected:
  // Nothing was allocated by GMP before: each test is the first in its process
  // to compute by it, or the others gave all back.
  MpfrThread() { mp_set_memory_functions(Allocate, Reallocate, Free); }

  template <typename F>
  void ExpectNothingHeldAfter(F compute) {
    // Memory that is allocated once for the process stays.
    std::thread(compute).join();
    const int64_t before = held;
    for (int i = 0; i < 4; ++i) std::thread(compute).join();
    EXPECT_EQ(held, before);
  }
};

TEST_F(MpfrThread, ThreadOfExactGivesItBack) {
  ExpectNothingHeldAfter([] {
    EXPECT_TRUE(Exact::Apply("exp", Exact(3)).has_value());
    EXPECT_TRUE(Exact::Apply("sin", Exact(3)).has_value());
  });
}

TEST_F(MpfrThread, ThreadOfRealGivesItBack) {
  ExpectNothingHeldAfter([] {
    const Real x(3.0, 300);
    EXPECT_EQ(x.ToDouble(), 3);
    EXPECT_TRUE(Exact::Apply("log", Exact(3)).has_value());
  });
}

// A softmax of scores of which all are very small.
TEST_F(MpfrThread, KeepsWhatIsVerySmall) {
  Real x(-1.2e9, 100);
  mpfr_exp(x.get(), x.get(), MPFR_RNDN);
  EXPECT_FALSE(mpfr_zero_p(x.get()));
  mpfr_div(x.get(), x.get(), x.get(), MPFR_RNDN);
  EXPECT_EQ(x.ToDouble(), 1);
}

}  // namespace
}  // namespace cleave
