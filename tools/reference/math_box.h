// MathBox: a part of a formula as MathML, with what its surroundings need to
// know of it: whether it wants parentheses there, and what a product writes
// between it and its neighbours.

#ifndef CLEAVE_TOOLS_REFERENCE_MATH_BOX_H_
#define CLEAVE_TOOLS_REFERENCE_MATH_BOX_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cleave::internal {

// How tightly a formula holds together, loosest first: as it looks, which is
// not as the language reads it. A fraction binds like a factor.
enum class Binding {
  kLoosest,
  kDefinition,  // y = e
  kOr,
  kAnd,
  kComparison,
  kRange,
  kConcat,
  kMod,
  kSum,
  kMinus,    // begins with a minus
  kProduct,  // juxtaposed
  kFactor,   // a fraction, a power, a sum with its sign
  kCall,     // f(x)
  kAtom,
};

// Where a formula begins or ends.
enum class Edge { kDigit, kLetter, kWord, kFunction, kFraction, kOther };

// Up to which of these things that follow a formula seems to belong to it.
enum class Opening {
  kClosed,
  kFactor,  // the sum over i of x, times 2
  kTerm,    // the last row of cases, plus 2
  kComma,   // cases of one row, and an element behind it
};

struct MathBox {
  // Elements that stand side by side: one of them unless `row`.
  std::string content;
  bool row = false;
  Binding binding = Binding::kAtom;
  Edge first = Edge::kOther;
  Edge last = Edge::kOther;
  Opening opening = Opening::kClosed;
  int size = 1;       // how many symbols it has, about
  bool tall = false;  // fences around it grow
  // The two elements of `x` with an index: a power is set above the index.
  std::string base;
  std::string index;

  // One element.
  std::string Element() const;
};

// `<mn>`, `<mi>` and `<mo>` of the text, which is escaped.
MathBox NumberBox(absl::string_view text);
MathBox NameBox(absl::string_view text);
std::string Operator(absl::string_view text, absl::string_view attributes = "");
// Words between formulas; a blank at an end is kept.
std::string Words(absl::string_view text);
// Rule text that is not typeset, a line below the other.
MathBox RuleTextBox(absl::string_view text);

// The contents one after the other, closed on the right if the last one is.
// Binds as an atom: the caller says otherwise.
MathBox Row(std::vector<MathBox> boxes);
MathBox Symbol(std::string element, int size = 1);
// With a comma between them.
MathBox CommaRow(std::vector<MathBox> boxes);
// Between parentheses or other fences, which grow with it.
MathBox Fenced(const MathBox& box, absl::string_view left = "(",
               absl::string_view right = ")");
// The box, in parentheses where it binds less than `least`, or where something
// follows it that would seem to be a part of it.
MathBox Operand(MathBox box, Binding least,
                Opening followed = Opening::kClosed);

// `left op right`. The left one may bind as `binding` does, the right one
// tighter.
MathBox InfixBox(MathBox left, std::string op, MathBox right, Binding binding);
// A product, with a point between factors that would run into each other, or
// between any.
MathBox ProductBox(MathBox left, MathBox right, bool point = false);
MathBox FractionBox(const MathBox& left, const MathBox& right);
// `left / right` on a line.
MathBox SlashBox(MathBox left, MathBox right);
MathBox PowerBox(MathBox base, const MathBox& exponent);
MathBox IndexBox(MathBox base, const MathBox& index);
// The element `op` with `under` below it, which ranges over the body.
MathBox BigBox(absl::string_view op, const MathBox& under, MathBox body);

// Rows of cells, all set to the left. Behind a brace if `brace`.
MathBox TableBox(const std::vector<std::vector<MathBox>>& rows, bool brace);
// Small rows in the middle, for below a sign.
MathBox StackBox(const std::vector<MathBox>& rows);

}  // namespace cleave::internal

#endif  // CLEAVE_TOOLS_REFERENCE_MATH_BOX_H_
