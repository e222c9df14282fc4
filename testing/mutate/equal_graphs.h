// Whether two graphs of calls are one, with all that is derived from them:
// their derivatives of first and second order, and their batches.
//
//   AreEqualGraphs(f, rules, g, rules, {}, true)  // f = g: proved

#ifndef CLEAVE_TESTING_MUTATE_EQUAL_GRAPHS_H_
#define CLEAVE_TESTING_MUTATE_EQUAL_GRAPHS_H_

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A number that one operand of a call is.
struct OperandNumber {
  std::string operand;
  double number = 0;
};

// Choices among ties that count: all, or those that a derivative passes
// through.
enum class Ties { kAll, kSlopes };

// Whether the values of both graphs are one, expanded and simplified, where
// those ties count. Graphs that are refused for one reason are equal, too.
bool HaveEqualValues(const Graph& graph, const RuleSet& rules,
                     const Graph& other, const RuleSet& other_rules, Ties ties);

// Whether both calls, and all that is derived from them, are one: expanded,
// simplified, and without what their choices never let through. With `numbers`,
// at each of these. `elementwise` says that no element of a result depends on
// two of an operand: numbers and NaN are looked at one after the other then.
bool AreEqualGraphs(const Graph& call, const RuleSet& rules, const Graph& other,
                    const RuleSet& other_rules,
                    const std::vector<OperandNumber>& numbers,
                    bool elementwise);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_EQUAL_GRAPHS_H_
