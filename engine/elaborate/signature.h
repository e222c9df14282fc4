// Binding a call to a declaration: sizes, packs and dtypes are matched, axes
// normalised, defaults filled in, result types found.

#ifndef CLEAVE_ENGINE_ELABORATE_SIGNATURE_H_
#define CLEAVE_ENGINE_ELABORATE_SIGNATURE_H_

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/elaborate/rule_value.h"
#include "ops/static_value.h"

namespace cleave {

class Elaborator;

// Statuses of `error` clauses that hold carry this payload: their kind.
inline constexpr char kErrorClausePayload[] = "cleave.error_clause";
// Attributes that name the extents known only at run time: "new.n" is that of
// the result axis `new n`, "new.V" of what a body calls V.
inline constexpr char kNewPrefix[] = "new.";

// The arguments of a call as given: tensors are terms.
struct GivenArguments {
  std::vector<RuleValue> positional;
  std::vector<std::pair<std::string, RuleValue>> named;
};

struct Binding {
  // Names of the signature: sizes, packs, dtypes, attributes, lets, inputs (as
  // they were given; an integer tensor that must widen is converted).
  Scope scope;
  // Per input, what was given: a term, a list of terms, absent, or static.
  std::vector<RuleValue> inputs;
  // All attributes that have a value, and static inputs, by name; None is left
  // out. Complete only where no dtype among them is open.
  Attributes attributes;
  // Per result; nullopt: absent. Empty if the declaration has no types.
  std::vector<std::optional<TermType>> results;
  // Names of `new n`, and what bounds them.
  std::vector<std::pair<std::string, Dim>> fresh;
};

struct BindOptions {
  // Variables for `new n`; by default "<op>.<n>".
  std::string fresh_prefix;
  // Evaluate `error` clauses: needs known dtypes.
  bool check_errors = false;
};

// Binds. InvalidArgument with a message that names op and argument (no place:
// the call's is the caller's to add), Unimplemented for what is not supported.
// `elaborator` is one for this declaration: mistakes in the declaration itself
// are kept in its diagnostic(); guards go to its guards(). Errors of `error`
// clauses are InvalidArgument("value: <message>").
absl::StatusOr<Binding> Bind(const Callable& callable,
                             const GivenArguments& arguments,
                             const BindOptions& options,
                             Elaborator& elaborator);

// Variables in the types of results that no operand's type has: extents known
// only when the graph runs.
std::set<std::string> NewVariables(
    const Binding& binding,
    const std::vector<std::optional<TermType>>& results);

// Checks what `where` says about dtype variables that are known; one that is
// open becomes i64 where its class allows. InvalidArgument otherwise.
absl::Status CheckWhere(const Callable& callable, const Binding& binding);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_SIGNATURE_H_
