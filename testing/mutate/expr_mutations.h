// ExprMutations: what one expression of a rule may be mistaken for. Its parts
// are looked at by the caller.

#ifndef CLEAVE_TESTING_MUTATE_EXPR_MUTATIONS_H_
#define CLEAVE_TESTING_MUTATE_EXPR_MUTATIONS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/lang/ast.h"
#include "testing/mutate/mutation.h"

namespace cleave {

// The names of an item, by what they stand for.
struct ItemNames {
  explicit ItemNames(const Item& item);

  // By the name of an attribute, its default.
  std::map<std::string, ExprPtr> defaults;
  // By the name of an input or attribute, the others of its type, in order.
  std::map<std::string, std::vector<std::string>> alike;
  // Attributes, sizes and what clauses compute from them: no tensors.
  std::set<std::string> statics;
};

// Where an expression stands.
struct ExprPlace {
  MutatedPart part = MutatedPart::kValue;
  bool in_index = false;  // in the brackets of an index, or a bound of one
  bool tied = false;      // `@tie` stands on it
  bool even = false;      // the operand of abs or a square: its sign is lost
  // The tangents, or cotangents, of the line.
  std::set<std::string> tangents;
};

// Whether one of the names occurs in it.
bool Mentions(const Expr& expr, const std::set<std::string>& names);

// Calls `add` with each mutation of `expr` itself.
void ExprMutations(
    const ExprPtr& expr, const ExprPlace& place, const ItemNames& names,
    const std::function<void(MutationOperator op, ExprPtr replacement)>& add);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_EXPR_MUTATIONS_H_
