// Judge: what becomes of one mutant.

#ifndef CLEAVE_TESTING_MUTATE_JUDGE_H_
#define CLEAVE_TESTING_MUTATE_JUDGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "testing/check/check.h"
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
        original_(std::move(original)) {}

  // Loads the mutant and checks it on each rule, until one is refuted.
  void Decide(const RuleTexts::Place& place, const Mutation& mutation,
              const Item& item, MutantReport& mutant) const;
  // The rule's item; of an override, that of the op.
  const Item& Declared(const CheckedRule& rule) const;
  OpReport CheckOne(const std::shared_ptr<const RuleSet>& rules,
                    const std::string& rule, bool types, bool values) const;
  // Whether the rule as it is is refuted at this seed.
  bool IsRefuted(const std::string& rule) const;
  bool IsElementwise(const Item& item) const;
  bool IsProved(const RuleTexts::Place& place, const Mutation& mutation,
                const Item& item) const;

  const RuleTexts& texts_;
  const RuleUses& uses_;
  const uint64_t seed_;
  const std::shared_ptr<const RuleSet> original_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, bool> refuted_;      // guarded by mutex_
  mutable std::map<std::string, bool> elementwise_;  // guarded by mutex_
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_JUDGE_H_
