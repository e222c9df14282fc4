// CheckKernels: what kernels compute, held to the interpreter.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_KERNELS_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel_cache.h"
#include "ops/tensor.h"
#include "testing/fuzz/differential/check_case.h"

namespace cleave::fuzz {

// Kernels of `made` at points, held to what `meant` gives there: by the
// schedules of patterns at one of the levels of instructions that the host has,
// and by plain loops, for open extents, or at another level. Each of them on
// one thread; on several, and on arrays of any strides, bit by bit the same.
// `choice` decides which; false, and an outcome that says so, where anything
// differs.
bool CheckKernels(const Graph& meant, const Graph& made,
                  const std::vector<std::vector<Tensor>>& points,
                  const std::string& what, const RuleSet& rules,
                  KernelCache& cache, uint64_t choice, Outcome& outcome);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_KERNELS_H_
