// WriteClauses: the ops of clause_rules.h as syntax. Internal to it.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_CLAUSE_WRITER_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_CLAUSE_WRITER_H_

#include <string>
#include <vector>

#include "engine/lang/ast.h"
#include "testing/check/reference/clause_rules.h"

namespace cleave {

// An op that computes a clause, and where the clause stands.
struct ClauseItem {
  Item item;
  std::string clause;  // "accuracy"
  uint32_t begin = 0;  // in the text of the op's file
};

struct WrittenClauses {
  OpClauses clauses;
  std::vector<ClauseItem> items;
};

WrittenClauses WriteClauses(const Item& item);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_CLAUSE_WRITER_H_
