// Integer elements that are affine in index variables, p * s + k * d - q, with
// Dims as coefficients: what decides whether a read is a slice or a gather, and
// whether it can be out of range.
//
// Every proof is under the assumption that the indices have values: where an
// extent is 0 nothing is read.

#ifndef CLEAVE_ENGINE_INDEX_AFFINE_H_
#define CLEAVE_ENGINE_INDEX_AFFINE_H_

#include <optional>
#include <utility>
#include <vector>

#include "engine/index/term.h"
#include "ops/dim.h"

namespace cleave {

struct Affine {
  Dim constant;
  // Each variable once, with a coefficient that is not 0.
  std::vector<std::pair<IndexPtr, Dim>> terms;
  // Whether arithmetic went beyond the limits of Dim; nothing is known then.
  bool overflow = false;

  bool IsConstant() const { return terms.empty() && !overflow; }
  // The coefficient of a variable; 0 where it does not occur.
  Dim CoefficientOf(const IndexVariable* index) const;
};

Affine operator+(const Affine& a, const Affine& b);
Affine operator-(const Affine& a, const Affine& b);
Affine Scaled(const Affine& a, const Dim& by);

// The least and the greatest value; nullopt where a coefficient's sign is not
// known, or beyond the limits of Dim.
std::optional<Dim> LeastValue(const Affine& a);
std::optional<Dim> GreatestValue(const Affine& a);

// Whether a >= 0 for all values of its variables, or where each of `facts` is
// >= 0, too. False: not proved.
bool ProvedNonNegative(const Affine& a, const std::vector<Affine>& facts = {});
// Whether some values of the variables, if there are any, make it negative.
bool ProvedSometimesNegative(const Affine& a);

// The affine form of an i64 element. Sees through floor division and
// remainders where ranges decide them ((g * 4 + i) // 4 = g for i < 4), max,
// min and select that are decided, and reads of comprehensions.
std::optional<Affine> ToAffine(const Term& element);

// Whether an integer element is proved to be in [0, extent), be it affine or
// not: a remainder by the extent, clamped, the place of a maximum. `facts` hold
// where it counts.
struct RangeProof {
  bool not_below = false;
  bool not_above = false;
};
RangeProof ProveRange(const Term& element, const Dim& extent,
                      const std::vector<Affine>& facts = {});

// Decides a bool element for all values of its indices.
Truth Decide(const Term& condition);

// Affine forms that are >= 0 where the condition (a comparison) holds; empty if
// it says nothing of that kind.
std::vector<Affine> FactsOf(const Term& condition);

// The conditions that are all true where `condition` is, without those that are
// always true: `and` is taken apart, bool comprehensions are read through.
std::vector<TermPtr> Conjuncts(const TermPtr& condition);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_AFFINE_H_
