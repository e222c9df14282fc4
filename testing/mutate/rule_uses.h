// RuleUses: which rules a mutant is checked on.
//
// A mutant of an op, an override, a rewrite or the derivative of a primitive is
// checked by itself; that of a derivative also on ops that use the primitive,
// since its own derivative is seen there alone. A mutant of a def is checked on
// rules that use it to compute, and not to say what they mean: where a spec
// changes with the def there is nothing to compare with.

#ifndef CLEAVE_TESTING_MUTATE_RULE_USES_H_
#define CLEAVE_TESTING_MUTATE_RULE_USES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "testing/mutate/rule_texts.h"

namespace cleave {

// Rules that a mutant is checked on, besides itself.
inline constexpr int kMaxUsers = 3;

// A rule as the checker names it, "jvp tanh", and where it stands.
struct CheckedRule {
  std::string name;
  RuleTexts::Place place;
};

class RuleUses {
 public:
  explicit RuleUses(const RuleTexts& texts);

  // The rules that a mutant of that item is checked on, the item itself first
  // if it is one. Empty where no mutant of it can be judged. At most kMaxUsers
  // others, chosen by `seed`.
  std::vector<CheckedRule> Of(const RuleTexts::Place& place,
                              uint64_t seed) const;

  // All ops and `jvp` items that use a def to compute, directly or through
  // other defs.
  std::vector<RuleTexts::Place> AllUsers(const std::string& def) const;
  // The def, and the defs that use it.
  std::set<std::string> DefsWith(const std::string& def) const;

  // "softplus", "def nan_free", "jvp tanh", "rewrite neg_neg".
  static std::string NameOf(const Item& item);

 private:
  struct Uses {
    std::set<std::string> meant;     // by declaration and spec
    std::set<std::string> computed;  // by body and transforms
  };

  // The names and those of what the defs among them use.
  std::set<std::string> WithDefs(std::set<std::string> names) const;

  const RuleTexts& texts_;
  std::map<std::string, RuleTexts::Place> defs_;
  std::map<RuleTexts::Place, Uses> uses_;  // of ops and of `jvp` items
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_RULE_USES_H_
