// Judge: what becomes of one mutant.

#ifndef CLEAVE_TESTING_MUTATE_JUDGE_H_
#define CLEAVE_TESTING_MUTATE_JUDGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "testing/check/check.h"
#include "testing/check/compare/verdict.h"
#include "testing/mutate/integer_exprs.h"
#include "testing/mutate/mutate.h"
#include "testing/mutate/mutation.h"
#include "testing/mutate/rule_texts.h"
#include "testing/mutate/rule_uses.h"

namespace cleave {

// Thread-safe. The texts and the uses outlive it.
class Judge {
 public:
  // InvalidArgument where the rules do not load.
  static absl::StatusOr<std::unique_ptr<Judge>> Make(const RuleTexts& texts,
                                                     const RuleUses& uses,
                                                     uint64_t seed);

  MutantReport Check(const RuleTexts::Place& place,
                     const Mutation& mutation) const;

 private:
  Judge(const RuleTexts& texts, const RuleUses& uses, uint64_t seed,
        std::shared_ptr<const RuleSet> original)
      : texts_(texts),
        uses_(uses),
        seed_(seed),
        original_(std::move(original)),
        integers_(texts) {}

  // Loads the mutant and checks it on each rule, until one fails.
  void Decide(const RuleTexts::Place& place, const Mutation& mutation,
              const Item& item, MutantReport& mutant) const;
  // The rule's item; of an override, that of the op.
  const Item& Declared(const CheckedRule& rule) const;
  // Checks the rule on each of those until one fails, by some layers.
  // False where the fate of the mutant is known.
  bool PassesChecks(const std::shared_ptr<const RuleSet>& rules,
                    const std::vector<CheckedRule>& checked,
                    const std::set<Layer>& layers, MutantReport& mutant) const;
  OpReport CheckOne(const std::shared_ptr<const RuleSet>& rules,
                    const std::string& rule, const std::set<Layer>& layers,
                    const std::vector<double>& points = {}) const;
  // Whether a layer fails on the rule as it is, at this seed.
  bool FailsAsItIs(const std::string& rule, Layer layer) const;
  bool IsElementwise(const Item& item) const;
  // `rules` are those of the mutant.
  bool IsProved(const RuleTexts::Place& place, const Mutation& mutation,
                const Item& item,
                const std::shared_ptr<const RuleSet>& rules) const;
  // Whether `chosen`, of the item, is a maximum or minimum of whole numbers.
  bool IsTieOfIntegers(const Item& item, const Expr& chosen) const;
  // Whether the op, an elementwise one of one operand, is right at these
  // numbers, in all dtypes.
  bool IsRightAt(const std::shared_ptr<const RuleSet>& rules,
                 const std::string& op, MutatedPart part,
                 const std::vector<double>& points) const;

  const RuleTexts& texts_;
  const RuleUses& uses_;
  const uint64_t seed_;
  const std::shared_ptr<const RuleSet> original_;
  const IntegerExprs integers_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  mutable std::map<std::pair<std::string, Layer>, bool> failing_;
  mutable std::map<std::string, bool> elementwise_;  // guarded by mutex_
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_JUDGE_H_
