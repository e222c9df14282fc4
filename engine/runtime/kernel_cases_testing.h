// Graphs that kernels are compared with the interpreter on: testdata/
// kernels.graphs, at extents from 0 to 257, with special values among others.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_CASES_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_CASES_H_

#include <random>
#include <string>
#include <vector>

#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/tensor.h"

namespace cleave {

struct KernelCase {
  std::string text;      // the graph
  double tolerance = 0;  // times the largest magnitude; 0: bit by bit
};
std::vector<KernelCase> KernelCases();

// The rules of rules/numerics, loaded once.
const RuleSet& Numerics();
// A graph in their context.
Graph ParseCase(absl::string_view text);
// With a cache in the test's own folder.
CompileOptions CaseOptions();

// Numbers of every kind: small, large, special, subnormal, repeated.
Tensor SampleCase(const TensorType& type, const DimValues& dims,
                  std::mt19937_64& random);
// A tensor of indices with its elements brought into an axis of n elements;
// another tensor as it is.
Tensor SmallIndices(Tensor tensor, int64_t n);

// Expects that the kernel of the case and the interpreter agree, or fail alike,
// at many extents.
void ExpectAgreement(const KernelCase& one, const CompileOptions& options);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_CASES_H_
