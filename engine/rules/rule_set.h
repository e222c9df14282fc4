// RuleSet: all that the loaded rule files declare, checked and compiled. An
// op's meaning for one signature is a Graph, made once and cached.
//
//   LoadResult loaded = LoadRules(sources, context, {MakeDerivedRules});
//   if (!loaded.diagnostics.empty()) ...
//   GraphBuilder b(context);
//   Value x = b.Input("x", type);
//   auto results = loaded.rules->Call(b, "softplus", {{"x", x}}, {{"beta",
//   2}});

#ifndef CLEAVE_ENGINE_RULES_RULE_SET_H_
#define CLEAVE_ENGINE_RULES_RULE_SET_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/source.h"

namespace cleave {

// One argument of a call: a tensor, nothing (an optional input not given), a
// list (a variadic input; elements may be absent), or a static value.
struct Argument {
  struct Absent {};
  std::string name;  // empty: by position
  std::variant<Absent, Value, std::vector<std::optional<Value>>, StaticValue>
      value;
};

// The callee of a composite node: its op, attributes and operand types. Inputs
// that are absent, and the lengths of variadic ones, are in the attribute
// kLayout (engine/ir/call_attributes.h); `static` inputs are attributes by
// their names.
struct Signature {
  OpId op = 0;
  AttributesId attributes = kNoAttributes;
  std::vector<TypeId> operands;
  friend bool operator==(const Signature& a, const Signature& b) {
    return a.op == b.op && a.attributes == b.attributes &&
           a.operands == b.operands;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Signature& s) {
    return H::combine(std::move(h), s.op, s.attributes, s.operands);
  }
};

// How an op gets a transform.
struct Coverage {
  enum class Kind { kGiven, kDerived, kImpossible, kNotSupported };
  Kind kind = Kind::kDerived;
  // The reason of the last two; the place of kGiven: "activation.rules:97".
  std::string why;
};

// A pointwise primitive as arithmetic on one element: its `numeric` item.
struct NumericBody {
  // Inputs are the operands, the output is the result, all 0-d. Its nodes are
  // constants and pointwise primitives that have no numeric themselves.
  Graph graph;
  double ulp = 0;  // the bound that it claims
};

struct NamedSource {
  std::string name;
  std::string text;
  bool json = false;
  // Written by a program, which may declare more than it uses and makes only
  // calls that fit: an unused name is no mistake, and bodies are checked at the
  // types of each call, not at symbolic ones.
  bool generated = false;
  // Comes with Cleave. Other files may declare ops and defs by the same names,
  // and do not use its defs.
  bool shipped = false;
};

class RuleSet;
class RewriteTable;

// The rules that transforms derive from a rule set, which owns them: the rules
// of single nodes (transforms/table/rule_tables.h), and the bodies of three
// kinds of calls in rules. Thread-safe.
//
// `jvp f(..)(..)` is a call of "jvp:f". Its attribute kActive says, per operand
// of f, whether its tangent is given behind f's operands; its results are the
// tangents of f's inexact results. `vjp f(..)(..)` is a call of "vjp:f" for
// each input that is asked for. Its kActive marks the operands of f whose
// cotangents are the results; its kLive says, per result of f, whether its
// cotangent is given behind f's operands. A call of "vmap:f" is a batch of
// calls of f (RuleSet::BatchOf).
class DerivedRules {
 public:
  virtual ~DerivedRules() = default;
  // `call` is the call of f alone: a graph of one composite node whose inputs
  // are its operands and whose outputs are its results.
  virtual absl::StatusOr<Graph> Jvp(const Graph& call,
                                    const std::vector<bool>& active) = 0;
  virtual absl::StatusOr<Graph> Vjp(const Graph& call,
                                    const std::vector<bool>& active,
                                    const std::vector<bool>& live) = 0;
  // `graph` with a batch in front of the inputs in `batched`, one of them at
  // least, and of all outputs.
  virtual absl::StatusOr<Graph> Vmap(const Graph& graph,
                                     const std::vector<bool>& batched,
                                     const Dim& batch) = 0;
};

// Called once for a rule set, as it is made.
using DerivedRulesMaker =
    std::unique_ptr<DerivedRules> (*)(const RuleSet& rules);

struct LoadOptions {
  // MakeDerivedRules (transforms/derived_rules.h). Null: the rule set has no
  // transforms, and calls of derived ops are Unimplemented.
  DerivedRulesMaker derive = nullptr;
  // Where it is kept that rules were checked without a mistake, so that another
  // process that loads the same ones only parses them. Empty: nowhere, each
  // load checks. nullopt: DefaultCacheFolder() (engine/files/cache_folder.h).
  std::optional<std::string> cache_folder;
  // The rules are known to have no mistakes, as those are that
  // LoadShippedRules finds in the program: they are not checked here. A mistake
  // in them shows where what it is in is used. ExtendRules checks what it adds.
  bool trusted = false;
};

// A mistake in rules, for programs that point to it.
struct PlacedMistake {
  std::string file;
  // From 1, columns in code points; 0 where it has no place, as a limit.
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;
  std::string pointer;  // of rules read from JSON
  std::string kind;     // "unknown-name"
  std::string message;
  std::string help;
};

struct LoadResult {
  std::shared_ptr<const RuleSet> rules;  // null if there is any diagnostic
  std::vector<std::string> diagnostics;  // rendered
  std::vector<PlacedMistake> mistakes;   // the same, one by one
  // Rendered: which ops have another name than their files say, since shipped
  // ones have theirs.
  std::vector<std::string> notes;
  // The rules were trusted, or a process checked the same ones before.
  bool checked_before = false;
};

// Parses, checks (names, cycles, types and shapes at symbolic signatures,
// unreachable branches, dead overrides, ...), all of it or, where the same
// rules were checked before, nothing. All mistakes of all files are reported.
// Bodies are compiled when they are first used.
//
// The shipped rules: a second of checks, once; 20 ms afterwards.
LoadResult LoadRules(const std::vector<NamedSource>& sources,
                     std::shared_ptr<Context> context,
                     const LoadOptions& options = {});

// A rule set extended by more texts, with the options of the base, which stays
// as it is, its ops without the overrides of the texts. The items that the
// texts declare are checked; the base was.
LoadResult ExtendRules(std::shared_ptr<const RuleSet> base,
                       const NamedSource& source);
LoadResult ExtendRules(std::shared_ptr<const RuleSet> base,
                       absl::Span<const NamedSource> sources);

// Thread-safe: any number of threads may share one rule set, which a process
// loads once, and its context. Bodies are compiled when
// they are first used, one at a time; what one thread compiles others wait for.
//
// Compiled bodies are kept as long as the rule set: one per signature, that is
// per op, attributes and operand types. Programs that call an op at ever new
// numbers as extents make it grow; sizes that are variables do not.
class RuleSet {
 public:
  const std::shared_ptr<Context>& context() const;

  // The op, host op ("aten.add.Tensor", "onnx.Gelu") or fn of that name; null
  // if there is none.
  const Item* Find(absl::string_view name) const;
  // The `jvp` item of a primitive; null if there is none.
  const Item* FindDerivative(absl::string_view primitive) const;
  // One statement of an op that is in force, and the item in whose body it
  // stands: the op's own, or an `override` of it.
  struct Line {
    const Statement* statement;
    const Item* item;
  };
  // The line of kResult is that of the body: none, where a host computes the
  // op. The lines of kJvp, kVjp and kVmap are the overrides. Empty for no op.
  std::vector<Line> Lines(absl::string_view op, StatementKind kind) const;
  // The `override` items of an op, in the order of their loading.
  std::vector<const Item*> Overrides(absl::string_view op) const;
  // Whether it is an op without a body, which a host computes.
  bool NeedsHost(OpId op) const;
  // All names of that kind, sorted; those of `override` items are their ops'.
  std::vector<std::string> Names(ItemKind kind) const;
  const std::vector<const Item*>& examples() const;
  const Source& SourceOf(const Item& item) const;

  // Adds a call. Attributes not given take their defaults; each declared error
  // that holds is InvalidArgument with its message; conditions on unknown sizes
  // become guards. Returns one value per result, absent ones nullopt. The node
  // is one composite call, whose name is the op's.
  absl::StatusOr<std::vector<std::optional<Value>>> Call(
      GraphBuilder& builder, absl::string_view op,
      const std::vector<Argument>& arguments,
      const Attributes& attributes) const;
  // Names of the results that Call returns, in order.
  std::vector<std::string> ResultNames(absl::string_view op) const;

  // Calls that stand for all calls of `op`: sizes are variables, packs have
  // ranks 0 to 2, optional inputs are there or not, dtypes represent their
  // classes, enums and bools take every value. Each is a graph of one node;
  // those that the op's errors reject are left out. NotFound for no op.
  absl::StatusOr<std::vector<Graph>> SymbolicCalls(absl::string_view op) const;

  // The signature of a composite node.
  static Signature SignatureOf(const Graph& graph, Value node);

  // The body for a signature, one level deep: inputs are the operands, outputs
  // the present results; calls of other ops stay calls. Cached; pointers live
  // as long as the rule set. Unimplemented("impossible: no decomposition") for
  // an op without a body.
  absl::StatusOr<const Graph*> Body(const Signature& signature) const;
  // The spec, nullptr if the op has none (or laws only). Ops called in it stay.
  absl::StatusOr<const Graph*> Spec(const Signature& signature) const;

  // Whether each element of the one result of a composite node depends on the
  // elements of its operands at the same place alone.
  absl::StatusOr<bool> IsElementwise(const Graph& graph, Value node) const;

  // Overrides; nullptr where the op has none that applies. jvp: inputs are the
  // operands, then the tangents of the operands in `active` (true per operand);
  // outputs are the tangents of the inexact results. Operands that are active
  // but have no `jvp` line of their own take the derived contribution: then
  // `covered[i]` is false and the tangent of i is not an input.
  struct JvpOverride {
    Graph graph;
    std::vector<bool> covered;
  };
  absl::StatusOr<const JvpOverride*> Jvp(const Signature& signature,
                                         const std::vector<bool>& active) const;
  // vjp: inputs are the operands, then the cotangents of the results that are
  // `live` (true per result that is present; inexact ones only); outputs are
  // the cotangents of the operands that are covered, which the override names.
  struct VjpOverride {
    Graph graph;
    std::vector<bool> covered;
  };
  absl::StatusOr<const VjpOverride*> Vjp(const Signature& signature,
                                         const std::vector<bool>& live) const;
  // vmap: inputs are the operands (whose types in `signature` are without the
  // batch), those in `batched` with an axis of extent `batch` leading; outputs
  // have the batch leading.
  absl::StatusOr<const Graph*> Vmap(const Signature& signature,
                                    const std::vector<bool>& batched,
                                    const Dim& batch) const;

  // Whether the op, or what it is a batch of, has overrides of that kind; of
  // kResult: a body.
  bool Declares(OpId op, StatementKind kind) const;
  // A batch of calls of `signature` that goes on having the op's jvp and vjp
  // overrides, batched: the signature of a call of "vmap:f", whose operands in
  // `batched`, one of them at least, have the batch in front, as all results
  // have. Its attributes are those of f, and kBatched: such a list for each
  // batch, the outermost last.
  Signature BatchOf(const Signature& signature,
                    const std::vector<bool>& batched, const Dim& batch) const;

  // The derivative of a pointwise primitive with a `jvp` item: inputs are the
  // operands, the result, then the tangents of active operands; the output is
  // the result's tangent. Unimplemented("impossible: ...") with the reason.
  absl::StatusOr<const Graph*> PrimitiveJvp(
      const Signature& signature, const std::vector<bool>& active) const;

  // The body that a pointwise primitive on operands of `dtype` becomes in a
  // kernel; nullptr where no `numeric` item says. Cached as Body is.
  absl::StatusOr<const NumericBody*> Numeric(Primitive primitive,
                                             DType dtype) const;

  // The `rewrite` items, compiled (engine/rules/rewrite_rule.h); Simplify
  // applies them.
  const RewriteTable& rewrites() const;
  // The item of that name; null if there is none.
  const Item* FindRewrite(absl::string_view name) const;

  // A declared `fn` as a graph of calls.
  absl::StatusOr<Graph> Function(absl::string_view name) const;

  // The rules that its transforms have derived so far; null where it has no
  // transforms.
  DerivedRules* derived() const;

  struct Impl;
  explicit RuleSet(std::unique_ptr<Impl> impl);
  ~RuleSet();
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_RULE_SET_H_
