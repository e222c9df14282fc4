// RuleHashes: a hash of what an op means and rests on, by which a verdict on it
// is known again.
//
//   RuleHashes hashes = *RuleHashes::Make(sources);
//   hashes.Of("softplus");   // "9f2c..", 64 digits
//
// It covers the tokens of the op's item, of its overrides and its examples, and
// of every item whose name occurs in one of these, and so on: defs and other
// ops with their overrides. The derivatives and numerics of primitives and the
// rewrites are in every hash, since each derived rule may use them. Comments,
// docs, layout and what stands nowhere among these do not count.

#ifndef CLEAVE_TESTING_CERTIFICATE_RULE_HASHES_H_
#define CLEAVE_TESTING_CERTIFICATE_RULE_HASHES_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/lang/source.h"
#include "engine/rules/rule_set.h"

namespace cleave {

class RuleHashes {
 public:
  // Hashes of no rules.
  RuleHashes() = default;
  // Takes all rules that are loaded together: another file may override an op,
  // or add a rewrite. Linear in their text. InvalidArgument for what does not
  // parse.
  static absl::StatusOr<RuleHashes> Make(
      const std::vector<NamedSource>& sources);

  // By the name that a CheckReport has: "softplus", "jvp tanh", "rewrite
  // neg_neg". Empty where nothing has that name.
  std::string Of(const std::string& op) const;

 private:
  struct Used {
    ItemKind kind = ItemKind::kOp;
    std::string name;
    std::string hash;             // of its tokens
    std::set<std::string> names;  // that occur in it
  };

  void Add(const RuleFile& file);
  // Adds the items that `names` reach to `items`, which holds those that were
  // reached before.
  void Reach(std::vector<std::string> names, std::set<size_t>& items) const;

  std::vector<Used> items_;
  // The items of a name that others use by it: no examples.
  std::map<std::string, std::vector<size_t>> by_name_;
  std::map<std::string, std::vector<size_t>> examples_;  // by the op they call
  std::set<size_t> everywhere_;  // and all that these reach
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_RULE_HASHES_H_
