// What a RuleSet holds. Internal to engine/rules.

#ifndef CLEAVE_ENGINE_RULES_RULE_SET_IMPL_H_
#define CLEAVE_ENGINE_RULES_RULE_SET_IMPL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/rules/compile_op.h"
#include "engine/rules/rewrite_rule.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct RuleSet::Impl {
  Library library;
  std::shared_ptr<Context> context;
  LoadOptions options;
  const RuleSet* rules = nullptr;  // whose this is

  // A signature with which of its operands are active or batched.
  using MaskedKey = std::pair<Signature, std::vector<bool>>;
  struct BatchedKey {
    MaskedKey key;
    Dim batch;
    friend bool operator==(const BatchedKey& a, const BatchedKey& b) {
      return a.key == b.key && a.batch == b.batch;
    }
    template <typename H>
    friend H AbslHashValue(H h, const BatchedKey& k) {
      return H::combine(std::move(h), k.key, k.batch);
    }
  };
  using GraphOr = absl::StatusOr<std::unique_ptr<const Graph>>;
  // Compiled once each; failures, too. Null: there is none.
  mutable absl::flat_hash_map<Signature, GraphOr> bodies;
  mutable absl::flat_hash_map<Signature, GraphOr> specs;
  mutable absl::flat_hash_map<
      MaskedKey, absl::StatusOr<std::unique_ptr<const RuleSet::JvpOverride>>>
      jvps;
  mutable absl::flat_hash_map<
      MaskedKey, absl::StatusOr<std::unique_ptr<const RuleSet::VjpOverride>>>
      vjps;
  mutable absl::flat_hash_map<BatchedKey, GraphOr> vmaps;
  mutable absl::flat_hash_map<MaskedKey, GraphOr> primitive_jvps;
  mutable absl::flat_hash_map<
      const Item*, absl::StatusOr<std::unique_ptr<const NumericBody>>>
      numerics;
  mutable std::unique_ptr<const RewriteTable> rewrites;  // null: not yet
  mutable std::vector<const Item*> compiling_numerics;   // as `compiling`
  mutable absl::flat_hash_map<std::pair<OpId, AttributesId>, bool> elementwise;
  // Bodies that are being compiled: an op that needs itself is a mistake.
  mutable std::vector<Signature> compiling;
  mutable int64_t dynamic_calls = 0;

  const Callable* CallableOf(OpId op) const;
  OpCompiler MakeCompiler(const Callable& callable) const;
  absl::StatusOr<std::vector<std::optional<Value>>> Call(
      GraphBuilder& builder, absl::string_view op,
      const std::vector<Argument>& arguments,
      const Attributes& attributes) const;
  absl::StatusOr<bool> IsElementwise(const Graph& graph, Value node) const;
  absl::StatusOr<std::vector<std::optional<TermType>>> ResultTypesOf(
      const Callable& callable, const Binding& binding) const;

  // Of calls of derived ops (derived_ops.cc).
  absl::StatusOr<Graph> CompileDerived(const Signature& signature) const;
  absl::StatusOr<Graph> CompileDerivative(const Signature& signature) const;
  // Null: f has no override that applies.
  absl::StatusOr<std::unique_ptr<const RuleSet::JvpOverride>> JvpOfBatch(
      const Signature& signature, const std::vector<bool>& active) const;
  absl::StatusOr<std::unique_ptr<const RuleSet::VjpOverride>> VjpOfBatch(
      const Signature& signature, const std::vector<bool>& live) const;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_RULE_SET_IMPL_H_
