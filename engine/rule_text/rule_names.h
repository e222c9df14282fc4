// RuleNames: the names of one item that a program writes, and numbers and sizes
// as expressions. Internal to graph_to_rule.

#ifndef CLEAVE_ENGINE_RULE_TEXT_RULE_NAMES_H_
#define CLEAVE_ENGINE_RULE_TEXT_RULE_NAMES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"
#include "ops/dim.h"
#include "ops/exact.h"
#include "ops/tensor_type.h"

namespace cleave {

class RuleNames {
 public:
  explicit RuleNames(const RuleSet& rules);
  // The name of an input, result or extent: `wish`, or with a number behind it
  // where that is taken. It may be that of an op, too.
  std::string Own(absl::string_view wish);
  // v1, v2, ..: names of nothing else.
  std::string Fresh(char letter);
  // An extent as an expression; its variables are noted.
  std::string DimText(const Dim& dim);
  std::string ShapeText(const Shape& shape);  // `[n, 2 * m]`
  // The variables noted, by the names they have.
  const std::map<std::string, std::string>& variables() const {
    return variables_;
  }

 private:
  std::set<std::string> foreign_;  // of the library
  std::set<std::string> taken_;
  std::map<char, int> numbers_;  // the last ones given
  std::map<std::string, std::string> variables_;
};

// `(a = x, b = y)`.
std::string RecordText(const std::vector<std::string>& names,
                       const std::vector<std::string>& values);

// A static number as an expression with its exact value.
std::string NumberText(const Exact& value);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULE_TEXT_RULE_NAMES_H_
