// The operators of the language and how tightly they bind: for the parser, the
// printer, and nobody else.

#ifndef CLEAVE_ENGINE_LANG_PRECEDENCE_H_
#define CLEAVE_ENGINE_LANG_PRECEDENCE_H_

#include "absl/strings/string_view.h"

namespace cleave::internal {

// Loosest first.
enum Precedence : int {
  kPrecedenceIf = 0,
  kPrecedenceCoalesce,    // ?? (to the right)
  kPrecedenceOr,          // or
  kPrecedenceAnd,         // and
  kPrecedenceNot,         // not
  kPrecedenceComparison,  // == != < <= > >= in is (not chained)
  kPrecedenceRange,       // .. (not chained)
  kPrecedenceConcat,      // ++
  kPrecedenceSum,         // + -
  kPrecedenceProduct,     // * / // % @
  kPrecedenceMinus,       // - in front
  kPrecedencePower,       // ^ (to the right)
  kPrecedencePostfix,     // a[i] a.b f(x) @tie(first)
};

// The precedence of a binary operator, -1 if `text` is none.
int BinaryPrecedence(absl::string_view text);
// Words that are no names.
bool IsReservedWord(absl::string_view text);
// `sum`, `max` and so on, where an index list follows.
bool IsReduction(absl::string_view text);

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_PRECEDENCE_H_
