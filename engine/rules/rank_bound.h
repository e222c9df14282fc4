// RankBound: whether an op's symbolic calls, whose packs have ranks 0 to 2,
// stand for its calls of all ranks.
//
//   FindRankBound(rules, "softmax")->holds()   // true
//
// The argument. Where a declaration and all that its body calls name packs only
// as wholes (`S..` in types and shapes, `s..` as indices, `size(S)`), nothing
// asks for a single axis of a pack or for their number: elaboration puts the
// pack's axes, in order, wherever the pack stands. The body at a rank r >= 1 is
// then the one at rank 1 with each axis of the pack replaced by r axes, in
// types, attributes and index lists alike, and so is any transform that treats
// axes alike. Two graphs that are equal at rank 1 stay equal under the
// replacement; rank 0 is tried by itself, and rank 2 as a test of the argument.
// Right-aligned broadcasting is of this kind only where shapes are suffixes of
// one another by name, that is where no call needs extents to be equal (a
// guard). Branches must rest on values that are all tried.

#ifndef CLEAVE_ENGINE_RULES_RANK_BOUND_H_
#define CLEAVE_ENGINE_RULES_RANK_BOUND_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// The greatest rank of a pack in RuleSet::SymbolicCalls.
inline constexpr int kMaxSymbolicRank = 2;

struct RankBound {
  // Whether the symbolic calls are all combinations of ranks, presence, dtypes,
  // enums and bools, not a selection of them.
  bool exhaustive = false;
  // The part of the op that keeps the argument from holding; empty: it holds.
  std::string why_not;

  bool holds() const { return exhaustive && why_not.empty(); }
};

// NotFound for no op.
absl::StatusOr<RankBound> FindRankBound(const RuleSet& rules,
                                        absl::string_view op);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_RANK_BOUND_H_
