// The static checks of rules: names, cycles, types and shapes at symbolic
// signatures, branches that are never taken, overrides that are never used.

#ifndef CLEAVE_ENGINE_RULES_CHECK_H_
#define CLEAVE_ENGINE_RULES_CHECK_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/bind/library.h"
#include "engine/elaborate/elaborator.h"
#include "engine/lang/diagnostic.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor_type.h"

namespace cleave {

// The mistakes in the items of one file of `rules`, in order of place; of a
// generated one (NamedSource::generated) those of its names alone.
std::vector<Diagnostic> CheckFile(const RuleSet& rules, const LoadedFile& file);

// Whether CheckFile finds no mistake in any of `files`. All cores look: where
// there is a mistake, or the budget ends, it is false soon, and CheckFile tells
// what there is.
bool HaveNoMistakes(const RuleSet& rules,
                    absl::Span<const std::shared_ptr<const LoadedFile>> files);

// A type whose sizes are variables of their names: `f32[B, D]`.
absl::StatusOr<TensorType> DeclaredType(const TypeExpr& type,
                                        Elaborator& elaborator, Scope& scope);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CHECK_H_
