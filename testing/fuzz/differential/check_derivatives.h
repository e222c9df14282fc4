// CheckDerivatives: tangents and cotangents of a function in f64, each against
// the other and against differences.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_DERIVATIVES_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_DERIVATIVES_H_

#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"

namespace cleave::fuzz {

struct Slopes {
  std::string what;  // empty: all agree
  std::string text;
  int comparisons = 0;
  // Reverse mode as a graph of primitives, and points to run it at.
  std::optional<Graph> gradient;
  std::vector<std::vector<Tensor>> gradient_points;
};

// `function` is of calls, its floats are f64. A function that has no derivative
// is left out, and points where results, tangents or cotangents are not finite.
Slopes CheckDerivatives(const Graph& function, const RuleSet& rules,
                        const std::vector<std::vector<Tensor>>& points);

// How far rounding may move each part of the results of a graph of primitives
// in f64 or c128, its inputs being rounded, too: seen in a few samples. Nothing
// where that is not known.
std::optional<std::vector<std::vector<double>>> RoundingSpread(
    const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_DERIVATIVES_H_
