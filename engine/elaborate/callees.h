// Callees: what calls of ops become where a rule that makes them is compiled:
// the other side of the elaborator and of TermLowerer, which a RuleSet is.

#ifndef CLEAVE_ENGINE_ELABORATE_CALLEES_H_
#define CLEAVE_ENGINE_ELABORATE_CALLEES_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/elaborate/branch_observer.h"
#include "engine/elaborate/signature.h"
#include "engine/ir/graph.h"

namespace cleave {

class Callees {
 public:
  virtual ~Callees() = default;

  // Who is told what is decided in the rules that make the calls; null: nobody.
  virtual BranchObserver* observer() const { return nullptr; }

  // The types of the results of a call whose declaration does not say them
  // (host ops): those of the body. Its dtypes must be known.
  virtual absl::StatusOr<std::vector<std::optional<TermType>>> ResultTypes(
      const BoundCall& call) const = 0;

  // A call whose operands are in a graph: its dtypes are closed, its clauses
  // are looked at, and its guards are those of the graph.
  struct CallNode {
    AttributesId attributes = kNoAttributes;
    std::vector<TensorType> results;  // those that are present
  };
  virtual absl::StatusOr<CallNode> MakeNode(const BoundCall& call,
                                            absl::Span<const Value> operands,
                                            GraphBuilder& builder) const = 0;

  // The call of a bound call of elements, on arrays of such elements.
  // Unimplemented where it does not act on each element by itself.
  virtual absl::StatusOr<Value> CallElementwise(
      const BoundCall& call, absl::Span<const Value> arrays,
      GraphBuilder& builder) const = 0;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_CALLEES_H_
