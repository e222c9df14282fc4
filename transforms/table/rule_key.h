// Keys of the tables of rules. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_TABLE_RULE_KEY_H_
#define CLEAVE_TRANSFORMS_TABLE_RULE_KEY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace cleave {

// A bit per element, 32 to a word.
template <typename Key>
void AppendMask(absl::Span<const bool> mask, Key& key) {
  uint32_t bits = 0;
  int used = 0;
  for (bool bit : mask) {
    bits |= uint32_t{bit} << used;
    if (++used == 32) {
      key.push_back(bits);
      bits = 0;
      used = 0;
    }
  }
  key.push_back(bits);
}

// The node's identity, its operands' types and a bit per operand.
template <typename Key>
void SetRuleKey(const Graph& graph, Value node, absl::Span<const bool> mask,
                uint32_t extra, Key& key) {
  const Node& n = graph.node(node);
  key.clear();
  key.push_back(extra);
  key.push_back(n.op);
  key.push_back(n.attributes);
  AppendMask(mask, key);
  for (Value v : graph.operands(node)) key.push_back(graph.node(v).type);
}

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_RULE_KEY_H_
