// WithTransforms: loads rules together with all that transforms derive from
// them.
//
//   LoadRules(sources, context, WithTransforms());
//   Vjp(f, {true}, *loaded.rules);

#ifndef CLEAVE_TRANSFORMS_DERIVED_RULES_H_
#define CLEAVE_TRANSFORMS_DERIVED_RULES_H_

#include <memory>

#include "engine/rules/rule_set.h"

namespace cleave {

// For LoadOptions::derive: the rules of single nodes, which all transforms by
// these rules share, and the bodies of `jvp f(primals)(tangents)`, `vjp f` and
// batches of calls in rules. It derives them from overrides and bodies as Jvp,
// Vjp and Vmap do; tangents and cotangents that are symbolically zero are
// zeros.
std::unique_ptr<DerivedRules> MakeDerivedRules(const RuleSet& rules);

// Options to load rules that transforms use.
inline LoadOptions WithTransforms() {
  LoadOptions options;
  options.derive = MakeDerivedRules;
  return options;
}

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_DERIVED_RULES_H_
