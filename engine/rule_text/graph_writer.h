// GraphWriter: the nodes of one graph or region as lines of a rule's body.
// Internal to graph_to_rule.

#ifndef CLEAVE_ENGINE_RULE_TEXT_GRAPH_WRITER_H_
#define CLEAVE_ENGINE_RULE_TEXT_GRAPH_WRITER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/bind/call_layout.h"
#include "engine/bind/library.h"
#include "engine/ir/graph.h"
#include "engine/ir/loop_operands.h"
#include "engine/rule_text/rule_names.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A value as text: `exp(x)`. It may have fewer axes than the value, or 1 for
// some extents, where the language broadcasts it; a number has no dtype.
struct RuleText {
  std::string text;
  bool atom = true;   // needs no parentheses as an operand
  bool typed = true;  // false: a number
  Shape shape;
};

// Unimplemented: "not supported: `what` in rule text".
absl::Status NotWritten(absl::string_view what);

class GraphWriter {
 public:
  // `lines` gets the statements; inside of a region all of its lines do.
  GraphWriter(const Graph& graph, const RuleSet& rules, RuleNames& names,
              std::vector<std::string>& lines)
      : graph_(graph), rules_(rules), names_(names), lines_(lines) {}

  // Which nodes the text has, as inputs or otherwise.
  std::vector<bool> Needed();
  // Names an input; called before Write.
  void SetInput(Value input, std::string name);
  // Nothing becomes a statement: for what must be one expression.
  void WriteAsExpression() { may_let_ = false; }
  // Writes the nodes that the outputs need; one text per output.
  absl::StatusOr<std::vector<std::string>> Write();

 private:
  // graph_writer.cc
  absl::StatusOr<RuleText> WriteNode(Value v);
  absl::StatusOr<RuleText> Pointwise(Primitive primitive, Value v);
  absl::StatusOr<RuleText> Call(Value v);
  absl::StatusOr<RuleText> TransformCall(Value v, absl::string_view op);
  // `op(operands.., attributes..)`.
  absl::StatusOr<std::string> CallText(const Callable& callable,
                                       const CallLayout& layout, Value v);
  // The operands of a loop: the names of constants and carries in its regions,
  // and `carry = first value` for each carry.
  struct LoopText {
    std::vector<std::string> inputs;
    std::vector<std::string> carries;
    std::vector<std::string> starts;
  };
  absl::StatusOr<LoopText> LoopTextOf(absl::Span<const Value> operands,
                                      const LoopOperands& of);
  absl::StatusOr<RuleText> Scan(Value v);
  absl::StatusOr<RuleText> Cond(Value v);
  absl::StatusOr<RuleText> While(Value v);
  absl::StatusOr<std::string> RegionBody(const Graph& region,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<std::string>& names);
  RuleText Constant(Value v);
  // The text of the movement `v` to `shape`: that of its operand if the
  // language spreads the operand by itself, else a `reshape`.
  RuleText Reshaped(Value v, const Shape& shape);
  bool Is(Value v, Primitive primitive) const;
  Shape Aligned(Value broadcast) const;
  Shape KeptShape(Value reduction) const;
  Value Source(Value user, Value operand) const;
  // A node whose results are called so.
  RuleText Fields(Value v, std::vector<std::string> fields);
  // The text as an operand; with its type's dtype and shape; a name for it.
  std::string Operand(Value v);
  std::string Full(Value v);
  // `broadcast_to(text, shape: ..)`, a tensor even of a literal.
  std::string Spread(absl::string_view text, const Shape& shape);
  absl::StatusOr<std::string> Name(Value v);
  absl::StatusOr<std::string> Let(absl::string_view text);
  RuleText Atom(Value v, std::string text) const;

  // write_structured.cc: what needs indices, and builtins.
  absl::StatusOr<RuleText> Structured(Primitive primitive, Value v);
  RuleText Reduction(Value v);
  absl::StatusOr<RuleText> Slice(Value v);
  absl::StatusOr<RuleText> Pad(Value v);
  absl::StatusOr<RuleText> Windows(Value v);
  absl::StatusOr<RuleText> WindowsAdd(Value v);
  absl::StatusOr<RuleText> DotGeneral(Value v);
  absl::StatusOr<RuleText> Conv(Value v);
  absl::StatusOr<RuleText> Gather(Value v);
  absl::StatusOr<RuleText> Scatter(Value v);
  // `let name[indices with bounds] = element`.
  absl::StatusOr<RuleText> Equation(Value v,
                                    const std::vector<std::string>& indices,
                                    absl::string_view element);
  std::vector<std::string> Indices(size_t count);
  // `i < n, j < m`.
  std::string Bound(const std::vector<std::string>& indices,
                    const Shape& bounds);

  const Graph& graph_;
  const RuleSet& rules_;
  RuleNames& names_;
  std::vector<std::string>& lines_;
  bool may_let_ = true;
  std::vector<int> uses_;
  std::vector<bool> keeps_axes_;  // reductions that only such use as have 1
  std::vector<std::optional<RuleText>> texts_;
  // The results of nodes that have several.
  std::map<Value, std::vector<std::string>> fields_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULE_TEXT_GRAPH_WRITER_H_
