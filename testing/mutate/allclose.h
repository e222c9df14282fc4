// AllcloseKills: whether the usual test of a decomposition finds a mutant: 20
// random samples in f32, compared within rtol 1.3e-6 and atol 1e-5, which are
// PyTorch's. It stands beside the checker's own figures, and says how much
// harder those are to come by.
//
// The truth is the spec in f64, or where there is none the rule as it was; of a
// derivative, that of the spec, by the rules as they were. Samples at which the
// rule as it was does not pass either do not count: the test's author would
// have left them out.

#ifndef CLEAVE_TESTING_MUTATE_ALLCLOSE_H_
#define CLEAVE_TESTING_MUTATE_ALLCLOSE_H_

#include <cstdint>

#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/mutate/mutation.h"

namespace cleave {

inline constexpr int kAllcloseSamples = 20;
inline constexpr double kAllcloseRelative = 1.3e-6;
inline constexpr double kAllcloseAbsolute = 1e-5;

// Whether |got - want| <= atol + rtol |want| everywhere; NaN is NaN, infinities
// and what is no float are equal.
bool Allclose(const Tensor& got, const Tensor& want);

// `item`: the op, `jvp` or `rewrite` item as it was, that is compared.
bool AllcloseKills(const RuleSet& mutant, const RuleSet& original,
                   const Item& item, MutatedPart part, uint64_t seed);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_ALLCLOSE_H_
