// The bodies of `jvp f(primals)(tangents)` in rules.
//
//   LoadRules(sources, context, {MakeDerivedBodies()});

#ifndef CLEAVE_TRANSFORMS_DERIVED_BODIES_H_
#define CLEAVE_TRANSFORMS_DERIVED_BODIES_H_

#include <memory>

#include "engine/rules/rule_set.h"

namespace cleave {

// Derives the call's tangents as Jvp does, from overrides and bodies: inputs
// are the operands of f, then the tangents of the active ones; outputs are the
// tangents of its inexact results, zeros where they are symbolically zero.
std::shared_ptr<DerivedBodies> MakeDerivedBodies();

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_DERIVED_BODIES_H_
