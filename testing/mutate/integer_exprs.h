// IntegerExprs: which expressions of rules are whole numbers by their form,
// whatever the dtypes of a call are: sizes, indices, integer attributes, and
// what their arithmetic makes of them.
//
//   max(2 * n - 2, 1)   where `n` is an extent of an input
//   min(i, S[d] - 1)    where `i` is an index
//   max(x, iota(n))     whatever `x` is
//
// A whole number has no derivative, so that the tie of such a maximum may be
// broken either way.

#ifndef CLEAVE_TESTING_MUTATE_INTEGER_EXPRS_H_
#define CLEAVE_TESTING_MUTATE_INTEGER_EXPRS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/lang/ast.h"
#include "testing/mutate/rule_texts.h"

namespace cleave {

// The texts outlive it.
class IntegerExprs {
 public:
  explicit IntegerExprs(const RuleTexts& texts);

  // Whether `e`, of the body of `item`, is a whole number, or a list or tensor
  // of such. Parameters of defs are, where all calls of the def pass such.
  // False where the form does not tell.
  bool IsInteger(const Item& item, const ExprPtr& e) const;

  // Whether `e` is a tensor of places, `iota(n)` or an `argmax`, say: these do
  // not mix with floats, so that what they are compared with is whole as well.
  static bool IsTensorOfPlaces(const Expr& e);

 private:
  struct Call {
    const Item* item;
    ExprPtr call;
  };
  class Scope;

  std::map<std::string, std::vector<Call>> calls_;  // by the name of the callee
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_INTEGER_EXPRS_H_
