// Typesetter: expressions and equations of rules as boxes of MathML.

#ifndef CLEAVE_TOOLS_REFERENCE_TYPESETTER_H_
#define CLEAVE_TOOLS_REFERENCE_TYPESETTER_H_

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "tools/reference/math_box.h"

namespace cleave::internal {

class Typesetter {
 public:
  // `optional`: the names that are conditions of being given.
  explicit Typesetter(std::set<std::string> optional)
      : optional_(std::move(optional)) {}

  // A name, in Greek where it is a letter's.
  static MathBox Name(absl::string_view name);

  // `small`: for an index or an exponent, where fractions lie on the line.
  MathBox Of(const Expr& expr, bool small = false) const;
  // `c` behind an "if": "eps is given" of an optional eps.
  MathBox OfCondition(const Expr& condition) const;
  // `y[i < n] = e`: the bounds stand behind it.
  MathBox OfEquation(const Equation& equation) const;
  MathBox OfStatement(const Statement& statement) const;

 private:
  MathBox Number(absl::string_view text) const;
  MathBox Unary(const Expr& expr, bool small) const;
  MathBox Binary(const Expr& expr, bool small) const;
  MathBox Comparison(const Expr& expr, absl::string_view sign,
                     bool small) const;
  MathBox Quotient(const Expr& expr, bool small) const;
  MathBox Power(const Expr& base, const Expr& exponent, bool small) const;
  MathBox Exponential(const Expr& exponent, bool small) const;
  MathBox Cases(const Expr& expr) const;
  MathBox Call(const Expr& expr, bool small) const;
  // Calls with signs of their own: sqrt, abs and so on.
  std::optional<MathBox> SignedCall(const Expr& expr, bool small) const;
  MathBox Arguments(const std::vector<ExprPtr>& positional,
                    const std::vector<NamedExpr>& named, bool small) const;
  MathBox Index(const Expr& expr, bool small) const;
  MathBox Comprehension(const Expr& expr, bool small) const;
  MathBox Record(const Expr& expr) const;
  MathBox Reduce(const Expr& expr, bool small) const;
  // A fold that is a sum, a product, or a chain of `and` or `or`.
  std::optional<MathBox> SignedFold(const Expr& expr) const;
  // scan, while and so on: a line for what goes in, then the body.
  MathBox Region(const Expr& expr) const;
  // `d` in the list: between its ends, where the list is a range.
  MathBox Membership(absl::string_view name, const Expr& list,
                     bool small) const;
  // `0 <= i < n`, or i alone.
  MathBox BinderBox(const Binder& binder, bool small) const;
  // The binders of a reduction, then the terms of its condition.
  struct Range {
    std::vector<MathBox> binders;
    std::vector<MathBox> conditions;
  };
  Range RangeOf(const Expr& reduce, bool small) const;
  // `x = e` of a record, an attribute, or where a loop starts.
  MathBox Assignment(const Equation& equation) const;

  std::set<std::string> optional_;
};

}  // namespace cleave::internal

#endif  // CLEAVE_TOOLS_REFERENCE_TYPESETTER_H_
