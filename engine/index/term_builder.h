// Building and rewriting element terms, for the lowering of index notation. A
// built term has its `free` indices, so that it stands wherever a parsed term
// may.

#ifndef CLEAVE_ENGINE_INDEX_TERM_BUILDER_H_
#define CLEAVE_ENGINE_INDEX_TERM_BUILDER_H_

#include <map>
#include <vector>

#include "engine/index/term.h"

namespace cleave {

TermPtr IndexTerm(const IndexPtr& index, DType dtype = DType::kI64);
TermPtr NumberTerm(const Exact& number, DType dtype);
TermPtr DimTerm(const Dim& dim, DType dtype = DType::kI64);
TermPtr PointwiseTerm(Primitive primitive, DType dtype,
                      std::vector<TermPtr> children);
// The term itself where it has that dtype already.
TermPtr ConvertTerm(const TermPtr& term, DType dtype);
// The conjunction; `true` of none.
TermPtr AndTerm(const std::vector<TermPtr>& conjuncts);

bool OccursFree(const Term& term, const IndexVariable* index);
// Whether any of `indices` occurs free in the term.
bool OccursFree(const Term& term, const std::vector<IndexPtr>& indices);

// Whether a reduction stands in the element (not in the arrays that it reads).
bool HasReduction(const Term& element);

// Replaces free index variables by integer elements, converted to the dtype
// that each place asks for.
using IndexSubstitution = std::map<const IndexVariable*, TermPtr>;
TermPtr Substitute(const TermPtr& element, const IndexSubstitution& by);

// The element of a comprehension at the indices of a read of it, if the
// comprehension's element has no reduction; null otherwise. The same value
// wherever the read is in range.
TermPtr InlinedRead(const Term& read);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_TERM_BUILDER_H_
