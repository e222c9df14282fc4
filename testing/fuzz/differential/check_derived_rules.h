// CheckDerivedRules: the derivatives of a function as rule text, loaded again,
// and held to those that the text was made of.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_DERIVED_RULES_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_DERIVED_RULES_H_

#include <memory>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/fuzz/differential/check_case.h"

namespace cleave::fuzz {

// `function` is a call of `f` in `rules`, its inexact inputs and results in f64
// or c128. A derivative that rules cannot say is left out. False, and an
// outcome that says so, where anything differs.
bool CheckDerivedRules(const Graph& function,
                       const std::shared_ptr<const RuleSet>& rules,
                       const std::vector<std::vector<Tensor>>& points,
                       Outcome& outcome);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_DERIVED_RULES_H_
