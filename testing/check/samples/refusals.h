// Refusals: which names of an op's signature each of its `error` clauses hangs
// on, and so what must differ in a call that one of them refused.
//
//   let m = (window - 1) // 2
//   error value "odd lengths" if 2 * m + 1 != window   // {"window"}

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_REFUSALS_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_REFUSALS_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"

namespace cleave {

class Refusals {
 public:
  Refusals(const RuleSet& rules, const Item& item);

  // Attributes, inputs, dtypes, sizes and packs; null where `status` is of no
  // clause of the op.
  const std::set<std::string>* NamesOf(const absl::Status& status) const;

 private:
  // By the place of the clause.
  std::map<std::string, std::set<std::string>> names_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_REFUSALS_H_
