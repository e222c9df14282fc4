// Bind: a call of a declared op, as given, becomes a BoundCall: sizes, packs
// and dtypes are matched, axes normalised, defaults filled in, result types
// found. Terms hold it, and the graph gets its node from it.
//
//   op scale(x: T[n], by: real = 2, bias: T[n]?) -> T[n] where T is float
//
//   scale(v)    callable = scale, operands = {v}, attributes = {by: 2, layout},
//               results = {T[n]}, and in the scope n, T, x, by, and no bias

#ifndef CLEAVE_ENGINE_ELABORATE_SIGNATURE_H_
#define CLEAVE_ENGINE_ELABORATE_SIGNATURE_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/bind/call_layout.h"
#include "engine/bind/library.h"
#include "engine/elaborate/rule_value.h"
#include "ops/static_value.h"

namespace cleave {

class Callees;
class Elaborator;

// Statuses of `error` clauses that hold carry this payload: their kind.
inline constexpr char kErrorClausePayload[] = "cleave.error_clause";

// The arguments of a call as given: tensors are terms.
struct GivenArguments {
  std::vector<RuleValue> positional;
  std::vector<std::pair<std::string, RuleValue>> named;

  // Null where nothing is given by that name.
  const RuleValue* Find(absl::string_view name) const;
};

struct BoundCall {
  const Callable* callable = nullptr;
  // Names of the signature: sizes, packs, dtypes, attributes, lets, inputs (as
  // they were given; an integer tensor that must widen is converted).
  Scope scope;
  // The tensors that are there, in the order of the inputs.
  std::vector<TermPtr> operands;
  CallLayout layout;
  // The node's attributes: all attributes that have a value, and static inputs,
  // by name (None is left out), the layout, and extents known only at run time.
  // Without attributes whose dtype is still open (NodeAttributes).
  Attributes attributes;
  // Per result; nullopt: absent. Empty where the declaration has no types and
  // BindHostResults has not found them.
  std::vector<std::optional<TermType>> results;
  // The extents `new n` by their names.
  std::vector<std::pair<std::string, Dim>> fresh;
  // The conditions that the sizes must fulfil.
  std::vector<ShapeGuard> guards;
  // The `where` and `error` clauses were looked at.
  bool checked = false;
};

struct BindOptions {
  // The extent that a call names by `name`: that of `new n`, or number 0, 1, ..
  // of a host's op. Null: a variable of that name.
  std::function<Dim(absl::string_view name)> new_extent;
  // Look at the `where` and `error` clauses: needs known dtypes.
  bool check = false;
};

// Binds. InvalidArgument with a message that names op and argument (no place:
// the call's is the caller's to add), Unimplemented for what is not supported.
// `elaborator` is one for this declaration: mistakes in the declaration itself
// are kept in its diagnostic(). Errors of `error` clauses are
// InvalidArgument("value: <message>").
absl::StatusOr<BoundCall> Bind(const Callable& callable,
                               const GivenArguments& arguments,
                               const BindOptions& options,
                               Elaborator& elaborator);

// The results of a call whose declaration has no types: those of the body.
// Extents that are known only when the graph runs are named by the call.
absl::Status BindHostResults(const Callees& callees, const BindOptions& options,
                             BoundCall* call);

// The attributes of the call's node, now that its dtypes are known.
Attributes NodeAttributes(const BoundCall& call);

// Checks what `where` says about dtype variables that are known; one that is
// open becomes i64 where its class allows. InvalidArgument otherwise.
absl::Status CheckWhere(const Callable& callable, const Scope& scope);

// Looks at the `error` clauses: InvalidArgument for one that holds; one that
// rests on unknown sizes becomes a guard. `partial`: names may be unbound, and
// clauses that cannot be evaluated are left out.
absl::Status CheckErrors(const Callable& callable, const Scope& scope,
                         bool partial, Elaborator& elaborator,
                         std::vector<ShapeGuard>* guards);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_SIGNATURE_H_
