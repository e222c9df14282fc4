// MutationsOf: all small mistakes that one may make in a rule.
//
//   for (const Mutation& mutation : MutationsOf(item)) {
//     std::cout << MutationOperatorName(mutation.op) << ": " << mutation.before
//               << " -> " << mutation.after << "\n";
//     Item mutant = Mutated(item, mutation);
//   }
//
//       constant-digits: 0.044715 -> 0.404715
//       branch-swapped: select(x > 0, x, y) -> select(x > 0, y, x)
//
// Mutated is what computes: bodies of ops, overrides and defs, lines of jvp,
// vjp and vmap, `jvp` items, and the right sides of rewrites. The parts that a
// rule is compared with stay: declarations, specs, errors, claims of accuracy,
// examples. Mutants need not load.

#ifndef CLEAVE_TESTING_MUTATE_MUTATION_H_
#define CLEAVE_TESTING_MUTATE_MUTATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/lang/source.h"

namespace cleave {

enum class MutationOperator : uint8_t {
#define MUTATION_OPERATOR(enumerator, name, doc) enumerator,
#include "testing/mutate/mutation_operator.def"
};

inline constexpr int kNumMutationOperators = 0
#define MUTATION_OPERATOR(enumerator, name, doc) +1
#include "testing/mutate/mutation_operator.def"
    ;

// "constant-digits".
absl::string_view MutationOperatorName(MutationOperator op);
// The operator of that name; nullopt where there is none.
std::optional<MutationOperator> FindMutationOperator(absl::string_view name);

// The parts of an item that compute.
enum class MutatedPart : uint8_t { kValue, kJvp, kVjp, kVmap, kRewrite };
// "value", "jvp", "vjp", "vmap", "rewrite".
absl::string_view MutatedPartName(MutatedPart part);
// The part of that name; nullopt where there is none.
std::optional<MutatedPart> FindMutatedPart(absl::string_view name);

struct Mutation {
  MutationOperator op{};
  MutatedPart part{};
  SourceRange range;   // of what is mutated
  std::string before;  // its text
  std::string after;
  // The expression, and what stands in its place; or else the whole item.
  ExprPtr target;
  ExprPtr replacement;
  std::shared_ptr<const Item> whole;
};

// In the order of the text. None for items of other kinds.
std::vector<Mutation> MutationsOf(const Item& item);

// `item`, of which `mutation` is one.
Item Mutated(const Item& item, const Mutation& mutation);

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_MUTATION_H_
