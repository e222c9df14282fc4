// The contents of a RuleSet. Internal to engine/rules.

#ifndef CLEAVE_ENGINE_RULES_RULE_SET_IMPL_H_
#define CLEAVE_ENGINE_RULES_RULE_SET_IMPL_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/rules/compile_op.h"
#include "engine/rules/rewrite_rule.h"
#include "engine/rules/rule_set.h"
#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {

struct RuleSet::Impl : Callees {
  // The items of `base`, of which nothing is compiled yet.
  static std::unique_ptr<Impl> WithItemsOf(const Impl& base);

  Library library;
  std::shared_ptr<Context> context;
  LoadOptions options;
  // The names that `library` has for fns, by those that their files give them;
  // only where a shipped item has that (engine/rules/shipped_names.h).
  std::map<std::string, std::string> renamed_functions;
  const RuleSet* rules = nullptr;  // whose this is
  // A rule set that ObserveBranches made has one.
  std::shared_ptr<BranchObserver> branch_observer;

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

  // Two locks, taken in this order. One thread compiles at a time: `compiling`
  // is held from before a table is found not to have something until it has
  // it, and taken again where that needs something else. Derived bodies call
  // back into the rule set from within: what they lock themselves they must
  // not hold while they wait for it on other threads. `tables` guards the
  // tables below, for as long as one takes to be searched or added to.
  mutable CallMutex compiling_mutex;
  mutable std::shared_mutex tables_mutex;

  // A pointer to what a table has: Table maps keys to unique pointers, or why
  // there is none.
  template <typename Table>
  using PointerOf =
      absl::StatusOr<typename Table::mapped_type::value_type::pointer>;
  // False where the table has nothing under `key`.
  template <typename Table>
  bool Find(const Table& table, const typename Table::key_type& key,
            PointerOf<Table>* found) const;
  // An entry that is there under the key already stays.
  template <typename Table>
  PointerOf<Table> Add(Table& table, const typename Table::key_type& key,
                       typename Table::mapped_type made) const;
  // The entry that is there, or what `make` returns.
  template <typename Table, typename Make>
  PointerOf<Table> FindOrMake(Table& table, const typename Table::key_type& key,
                              Make make) const;

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
  mutable std::map<const Item*,
                   absl::StatusOr<std::unique_ptr<const NumericBody>>>
      numerics;
  mutable absl::flat_hash_map<std::pair<OpId, AttributesId>, bool> elementwise;

  mutable std::once_flag rewrites_once;
  mutable std::unique_ptr<const RewriteTable> rewrites;  // null: not yet

  // Bodies that the thread that holds compiling_mutex is compiling: an op that
  // needs itself is a mistake.
  mutable std::vector<Signature> compiling;
  mutable std::vector<const Item*> compiling_numerics;

  // Calls that named extents known at run time only.
  mutable std::atomic<int64_t> dynamic_calls{0};
  // Refers to all of the above.
  std::unique_ptr<DerivedRules> derived;

  BranchObserver* observer() const override { return branch_observer.get(); }

  const Callable* CallableOf(OpId op) const;
  OpCompiler MakeCompiler(const Callable& callable) const;
  absl::StatusOr<std::vector<std::optional<Value>>> Call(
      GraphBuilder& builder, absl::string_view op,
      const std::vector<Argument>& arguments,
      const Attributes& attributes) const;
  absl::StatusOr<bool> IsElementwise(const Graph& graph, Value node) const;

  absl::StatusOr<std::vector<std::optional<TermType>>> ResultTypes(
      const BoundCall& call) const override;
  absl::StatusOr<CallNode> MakeNode(const BoundCall& call,
                                    absl::Span<const Value> operands,
                                    GraphBuilder& builder) const override;
  absl::StatusOr<Value> CallElementwise(const BoundCall& call,
                                        absl::Span<const Value> arrays,
                                        GraphBuilder& builder) const override;

  absl::StatusOr<Graph> CompileBody(const Signature& signature) const;

  // Bodies of calls of derived ops (derived_ops.cc).
  absl::StatusOr<Graph> CompileDerived(const Signature& signature) const;
  absl::StatusOr<Graph> CompileDerivative(const Signature& signature) const;
  // Null: f has no override that applies.
  absl::StatusOr<std::unique_ptr<const RuleSet::JvpOverride>> JvpOfBatch(
      const Signature& signature, const std::vector<bool>& active) const;
  absl::StatusOr<std::unique_ptr<const RuleSet::VjpOverride>> VjpOfBatch(
      const Signature& signature, const std::vector<bool>& live) const;
};

// The arguments of a call in a graph, as they are bound.
GivenArguments GivenInGraph(const std::vector<Argument>& arguments,
                            const Attributes& attributes,
                            const GraphBuilder& builder, TermMaker& terms);

// The same operands as arguments by name, static inputs left out.
std::vector<Argument> ArgumentsOf(const Callable& callable,
                                  const CallLayout& layout,
                                  absl::Span<const Value> operands);

template <typename Table>
bool RuleSet::Impl::Find(const Table& table,
                         const typename Table::key_type& key,
                         PointerOf<Table>* found) const {
  const std::shared_lock<std::shared_mutex> lock(tables_mutex);
  const auto it = table.find(key);
  if (it == table.end()) return false;
  if (it->second.ok()) {
    *found = it->second->get();
  } else {
    *found = it->second.status();
  }
  return true;
}

template <typename Table>
auto RuleSet::Impl::Add(Table& table, const typename Table::key_type& key,
                        typename Table::mapped_type made) const
    -> PointerOf<Table> {
  const std::unique_lock<std::shared_mutex> lock(tables_mutex);
  const auto it = table.try_emplace(key, std::move(made)).first;
  if (!it->second.ok()) return it->second.status();
  return it->second->get();
}

template <typename Table, typename Make>
auto RuleSet::Impl::FindOrMake(Table& table,
                               const typename Table::key_type& key,
                               Make make) const -> PointerOf<Table> {
  PointerOf<Table> found;
  if (Find(table, key, &found)) return found;
  const std::lock_guard<CallMutex> lock(compiling_mutex);
  // Another thread may have made it meanwhile.
  if (Find(table, key, &found)) return found;
  const BudgetScope scope;
  auto made = Deeper([&]() -> decltype(make()) {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kBodies));
    return make();
  });
  if (EndsCall(made.status())) return made.status();
  return Add(table, key, std::move(made));
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_RULE_SET_IMPL_H_
