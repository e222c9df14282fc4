// Named: a Halide expression under a name, for a value that is used more than
// once. Internal to this folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_NAMED_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_NAMED_H_

#include <string>

#include "Halide.h"

namespace cleave {

// The result of `use` on a name for the value: passes of Halide that walk
// expressions as trees take time exponential in the length of a chain of values
// that are each used twice.
template <typename Use>
Halide::Expr Named(const Halide::Expr& value, Use use) {
  using Halide::Internal::Let;
  using Halide::Internal::Variable;
  const std::string name = Halide::Internal::unique_name('v');
  return Let::make(name, value, use(Variable::make(value.type(), name)));
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_NAMED_H_
