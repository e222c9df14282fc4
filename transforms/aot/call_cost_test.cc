// The cost of a call of an AotFunction beside what it runs, counted: the
// allocations of a call that an earlier one was like. The compiler here makes a
// function that gives a tensor that is there already.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "engine/eager/tensor.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_function_testing.h"
#include "transforms/aot/call_cost_testing.h"

namespace {

thread_local int64_t allocations = 0;

}  // namespace

void* operator new(size_t size) {
  ++allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
// The operator of std::stable_sort. Replaced, too, so that what frees fits what
// allocates.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cleave::aot {
namespace {

class CallCost : public AotFunctionTesting {
 protected:
  // Allocations of the third call of a sum of `inputs` tensors.
  static int64_t OfSum(int inputs, bool dynamic, bool inference) {
    AotOptions options;
    options.dynamic = dynamic;
    const absl::StatusOr<AotFunction> f =
        AotFunction::Make(SumOf, CompileNothing, rules(), options);
    EXPECT_OK(f);
    const Tree arguments = SumArguments(inputs);
    AotCallOptions call;
    call.inference = inference;
    // The second call makes what later ones need again.
    for (int i = 0; i < 2; ++i) EXPECT_OK(f->Call(arguments, call));
    const int64_t before = allocations;
    const absl::StatusOr<AotResult> y = f->Call(arguments, call);
    const int64_t after = allocations;
    EXPECT_OK(y);
    EXPECT_EQ(f->traces(), 1);
    return after - before;
  }
};

// A tensor's shape is a vector: handing on an input makes one. The rest is the
// list of inputs, the result and its storage, what the backward keeps, and the
// two that the compiled function itself makes here.
TEST_F(CallCost, AllocatesOnceForAnInput) {
  for (const bool dynamic : {false, true}) {
    for (const bool inference : {false, true}) {
      const int64_t at_2 = OfSum(2, dynamic, inference);
      EXPECT_LE(at_2, 2 + 7) << dynamic << inference;
      EXPECT_LE(OfSum(100, dynamic, inference), at_2 + 98)
          << dynamic << inference;
    }
  }
}

// The check whether an earlier trace serves the call is one of the storages,
// too: one tensor given twice is another call than two tensors.
TEST_F(CallCost, SharedStoragesAreTracedAnew) {
  const auto f = AotFunction::Make(
      [](functional::Tensor x, functional::Tensor y) {
        x += 1;
        return x + y;
      },
      Interpreting(), rules());
  ASSERT_OK(f);
  AotCallOptions call;
  call.inference = true;
  for (int round = 0; round < 2; ++round) {
    const functional::Tensor x = Vector({1, 2});
    const functional::Tensor y = Vector({10, 20});
    ASSERT_OK_AND_ASSIGN(const AotResult apart,
                         f->Call(AotFunction::ArgumentTree(x, y), call));
    ExpectEqual(Leaf(apart.outputs), Vector({12, 23}));
    ASSERT_OK_AND_ASSIGN(const AotResult shared,
                         f->Call(AotFunction::ArgumentTree(y, y), call));
    ExpectEqual(Leaf(shared.outputs), Vector({22, 42}));
  }
  EXPECT_EQ(f->traces(), 2);
}

// Each part of a call that a trace depends on, changed alone after a call that
// was like the trace's.
TEST_F(CallCost, WhatDiffersIsTracedAnew) {
  const auto f = AotFunction::Make([](functional::Tensor x) { return Sin(x); },
                                   Interpreting(), rules());
  ASSERT_OK(f);
  AotCallOptions inference;
  inference.inference = true;
  AotCallOptions none;
  none.requires_gradient = std::vector<bool>{false};
  ASSERT_OK((*f)(Iota(3)));
  ASSERT_OK((*f)(Iota(3)));
  EXPECT_EQ(f->traces(), 1);
  ASSERT_OK_AND_ASSIGN(const AotResult without,
                       f->Call(functional::ToTree(Iota(3)), inference));
  EXPECT_FALSE(without.backward.exists());
  EXPECT_EQ(f->traces(), 2);
  ASSERT_OK_AND_ASSIGN(const AotResult unasked,
                       f->Call(functional::ToTree(Iota(3)), none));
  EXPECT_FALSE(unasked.backward.exists());
  EXPECT_EQ(f->traces(), 2);
  ASSERT_OK_AND_ASSIGN(const AotResult with, (*f)(Iota(3)));
  EXPECT_TRUE(with.backward.exists());
  EXPECT_EQ(f->traces(), 2);
  ASSERT_OK((*f)(Iota(4)));
  EXPECT_EQ(f->traces(), 3);
  ASSERT_OK((*f)(Matrix(3, 1)));
  EXPECT_EQ(f->traces(), 4);
  ASSERT_OK((*f)(functional::Tensor(Tensor(DType::kF32, {3}))));
  EXPECT_EQ(f->traces(), 5);
  // A view is a tensor of its type.
  ASSERT_OK((*f)(Iota(4)[{functional::Index(1, 4)}]));
  EXPECT_EQ(f->traces(), 5);
}

}  // namespace
}  // namespace cleave::aot
