// Proposals for the call of an op that batches it: where the batch goes in each
// operand, and which values the attributes get. For `softmax(x, axis: 0)` they
// are the batch in front of x and `axis: 1`. identity.h tells which of them are
// right. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VMAP_IDENTITY_PROPOSALS_H_
#define CLEAVE_TRANSFORMS_VMAP_IDENTITY_PROPOSALS_H_

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/lang/ast.h"

namespace cleave {

// How an operand of the batched op comes from that of the call, which has the
// batch in front if it is batched.
struct OperandForm {
  bool repeated = false;  // not batched: repeated for each example
  int units_behind = 0;   // extents 1 behind the batch, for right-alignment
  bool unit_at_end = false;
  friend bool operator==(const OperandForm& a, const OperandForm& b) {
    return a.repeated == b.repeated && a.units_behind == b.units_behind &&
           a.unit_at_end == b.unit_at_end;
  }
};

struct IdentityProposal {
  std::vector<OperandForm> operands;
  Attributes attributes;
  std::string how;  // "axes shifted", "as it is, `b` repeated", ..
};

// At most this many for one signature.
inline constexpr int kMaxIdentityProposals = 48;

// Likely ones first. `item` is the op's declaration, `types` are its operands'
// without the batch, `attributes` those of the call. Axes (declared so, or
// integers of hosts' ops that may be) are moved behind the batch; lists with a
// place per axis get one in front; einsum's equation gets a letter; operands of
// lower rank get extents 1, so that they stay right-aligned; those not batched
// are repeated.
std::vector<IdentityProposal> ProposeIdentity(
    const Item& item, const Attributes& attributes,
    const std::vector<TensorType>& types, const std::vector<bool>& batched,
    const Dim& batch);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_IDENTITY_PROPOSALS_H_
