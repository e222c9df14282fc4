// BranchObserver: learns what elaboration decided, so that a test can say which
// parts of a rule no call has reached.
//
//   class Taken : public BranchObserver {
//    public:
//     void Decided(const Expr& condition, bool holds) override { .. }
//   };
//
// Expressions are told apart by their addresses: those of a loaded file are
// shared by all rule sets that have the file.

#ifndef CLEAVE_ENGINE_ELABORATE_BRANCH_OBSERVER_H_
#define CLEAVE_ENGINE_ELABORATE_BRANCH_OBSERVER_H_

#include "engine/lang/ast.h"

namespace cleave {

// A rule set calls it from all threads that use the set, any of them at a time.
class BranchObserver {
 public:
  virtual ~BranchObserver() = default;
  // A static condition: of `if` and `cond`, of a comprehension, of an error or
  // of a result. The condition of `a ?? b` is a, which holds where it is there.
  // A `cond` on a value decides for both, since a graph has both.
  virtual void Decided(const Expr& condition, bool holds) = 0;
  // The condition of an `if` rests on sizes that are not known: it is decided,
  // and at other sizes otherwise.
  virtual void LeftOpen(const Expr& /*condition*/) {}
  // A statement of a body was evaluated: `value` is that of its equation.
  virtual void Evaluated(const Expr& /*value*/) {}
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_BRANCH_OBSERVER_H_
