// Identity-keeping batching: vmap of `softmax(axis: 0)` is `softmax(axis: 1)`,
// one call, nothing decomposed. Internal to transforms.
//
// Calls are proposed (identity_proposals.h) and then proved, for this signature
// and its symbolic extents: the op accepts the operands, with no guard that one
// example would not need, and the call and the transform of the body are the
// same hash-consed nodes. They are compared in one step first, with the calls
// in the bodies as calls, which costs a chain of ops its length; then expanded
// and simplified, axes of the literal extent 1 left out. Where no such call is
// found and the first axis is one along which the op computes each slice by
// itself (parallel_axis.h), the batch is merged into that axis.
//
// A call that repeats an operand for each example is kept only if the expansion
// repeats it as well, so that it costs nothing that the expansion does not.

#ifndef CLEAVE_TRANSFORMS_VMAP_IDENTITY_H_
#define CLEAVE_TRANSFORMS_VMAP_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/rules/rule_set.h"
#include "transforms/table/rule_cache.h"
#include "transforms/table/rule_table.h"

namespace cleave {

struct IdentityAnswer {
  // A graph of one call of the op, with what moves axes around it; nullopt
  // where none was found.
  std::optional<BatchRule> call;
  // How the call differs from that of one example ("as it is", "`axis` behind
  // the batch"), or why there is none: of the proposals, what the one that came
  // farthest met.
  std::string how;
};

// Thread-safe. The rule set must outlive it.
class IdentityFinder {
 public:
  explicit IdentityFinder(const RuleSet& rules)
      : rules_(rules), memos_(RuleTable::kMaxRules) {}

  // `signature` is the call of one example, `batched` its operands with a batch
  // of extent `batch`, `derived` the transform of the body. Which proposal is
  // right is remembered by op, attributes and pattern of extents: of a later
  // signature that one alone is proved, and none where all failed.
  IdentityAnswer Find(const Signature& signature,
                      const std::vector<bool>& batched, const Dim& batch,
                      const BatchRule& derived);

 private:
  using Key = std::vector<int64_t>;
  struct Memo {
    int proposal = -1;  // -1: none is right
    std::string why;
  };

  const RuleSet& rules_;
  RuleCache<Key, Memo> memos_;
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_IDENTITY_H_
