// SymbolicCalls: calls of an op that stand for all calls: sizes are variables,
// packs have ranks 0 to 2, optional inputs are there or not, dtypes represent
// their classes, enums and bools take every value.

#ifndef CLEAVE_ENGINE_RULES_SYMBOLIC_CALL_H_
#define CLEAVE_ENGINE_RULES_SYMBOLIC_CALL_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/bind/library.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Combinations that are tried for one op. Where there are more, every choice
// still occurs, in a fixed selection of combinations.
inline constexpr int kMaxCombinations = 64;

struct SymbolicCall {
  std::vector<Argument> arguments;
  Attributes attributes;
  // The combination, for messages: "T = f32, reduction = mean, S.. of rank 2".
  std::string description;
};

class SymbolicCalls {
 public:
  explicit SymbolicCalls(const Callable& callable);

  int count() const { return static_cast<int>(combinations_.size()); }
  // All combinations are tried.
  bool exhaustive() const { return exhaustive_; }
  // Names that are given in one call and absent in another.
  const std::set<std::string>& optional() const { return optional_; }
  // Names whose every value occurs: enums and bools.
  const std::set<std::string>& enumerated() const { return enumerated_; }
  // Call number `i`; its tensors become inputs of `builder`. InvalidArgument
  // where a declared type cannot be evaluated.
  absl::StatusOr<SymbolicCall> Make(int i, const Library& library,
                                    GraphBuilder& builder) const;

 private:
  struct Choice {
    enum class Kind { kRank, kPresent, kDType, kAttribute, kLength };
    Kind kind;
    std::string name;
    std::vector<StaticValue> values;
  };

  const Callable& callable_;
  std::vector<Choice> choices_;
  std::vector<std::vector<int>> combinations_;
  bool exhaustive_ = true;
  std::set<std::string> enumerated_;
  std::set<std::string> optional_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_SYMBOLIC_CALL_H_
