// Splitting of indices into digits: where x[i // 4] or x[i % 4] is read for
// i < 12, i becomes 4 j + k with j < 3 and k < 4, and the reads x[j] and x[k].
// So grouped contractions and two-dimensional windows that are written with one
// index lower like those that are written with two.

#ifndef CLEAVE_ENGINE_INDEX_SPLIT_INDICES_H_
#define CLEAVE_ENGINE_INDEX_SPLIT_INDICES_H_

#include <vector>

#include "engine/index/term.h"

namespace cleave {

struct SplitTerms {
  // In the order of the unsplit ones, the slower digit first: they number the
  // same elements row by row.
  std::vector<IndexPtr> indices;
  std::vector<TermPtr> elements;
};

// Splits the indices of one binder where a read in its elements calls for it
// and the divisor is proved to divide the extent. Indices of reductions inside
// are left to their turn. Not split are indices that are compared with: those
// make a reduction a scan or a scatter.
SplitTerms SplitIndices(std::vector<IndexPtr> indices,
                        std::vector<TermPtr> elements);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_SPLIT_INDICES_H_
