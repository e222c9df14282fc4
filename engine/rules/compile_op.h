// OpCompiler: what an op means for one signature, as graphs: body, spec,
// overrides. Nothing is cached here; RuleSet does.

#ifndef CLEAVE_ENGINE_RULES_COMPILE_OP_H_
#define CLEAVE_ENGINE_RULES_COMPILE_OP_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/bind/op_lines.h"
#include "engine/elaborate/elaborator.h"
#include "engine/elaborate/signature.h"
#include "engine/ir/graph.h"
#include "engine/rules/lower_term.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A declared op bound to the operands of a signature, ready to elaborate.
class OpCompiler {
 public:
  OpCompiler(const Library& library, const Callable& callable,
             std::shared_ptr<Context> context, const Callees& callees);

  // Binds inputs named as declared (elements of variadic ones `xs.0`, ..) of
  // the signature's types. `batched`, if not empty: which operands have an axis
  // of extent `batch` in front; the signature's names keep their meaning
  // without it.
  absl::Status BindSignature(const Signature& signature,
                             const std::vector<bool>& batched = {},
                             const Dim& batch = 0);

  // The results of the body; absent ones are null. Unimplemented without one.
  absl::StatusOr<Graph> Body();
  absl::StatusOr<Graph> Spec();
  absl::StatusOr<std::optional<RuleSet::JvpOverride>> Jvp(
      const std::vector<bool>& active);
  // The `vjp` override; results that are not `live` have the cotangent 0.
  absl::StatusOr<std::optional<RuleSet::VjpOverride>> Vjp(
      const std::vector<bool>& live);
  // The override whose inputs are batched as bound.
  absl::StatusOr<std::optional<Graph>> Vmap(const std::vector<bool>& batched);

  // Types of the results, also of host ops.
  absl::StatusOr<std::vector<std::optional<TermType>>> ResultTypes();

  Elaborator& elaborator() { return elaborator_; }
  // The call that the signature stands for, once it is bound.
  const BoundCall& call() const { return call_; }

  // Evaluates everything without lowering: for checks. The results of an op
  // without a body are those of a call of it.
  absl::StatusOr<std::vector<TermPtr>> ElaborateBody();
  absl::StatusOr<std::vector<TermPtr>> ElaborateSpec();

 private:
  struct Operand {
    size_t input;
    int place;  // in a variadic input; -1
    std::string name;
    TermPtr term;  // in the types of the operand, before `compute acc`
  };

  absl::StatusOr<std::vector<TermPtr>> ElaborateBodyOnce();
  // The results of an op without a body: those of a call of it.
  absl::StatusOr<std::vector<TermPtr>> ElaborateCall();
  // The scope in which the lines of a part stand, that of its lets; the
  // elaborator reads the part's source from here on.
  absl::StatusOr<const Scope*> EnterPart(const BodyPart& part);
  // The tangents of one input's operands: inputs of the graph where they are
  // covered, else zero.
  absl::StatusOr<RuleValue> TangentOf(size_t input,
                                      const std::vector<bool>& covered);
  // Sets the names of the results, as the body gives them.
  void SetResults(Scope* scope) const;
  absl::Status EnterReals(Scope* scope);
  absl::StatusOr<TermPtr> Wrap(const TermPtr& x, const DTypePtr& dtype);
  // The scope of the body: floats in their accumulation types.
  absl::Status EnterBody();
  absl::StatusOr<std::vector<Elaborator::DeclaredResult>> Declared();
  absl::StatusOr<std::vector<TermPtr>> Results(
      const RuleValue& value,
      const std::vector<Elaborator::DeclaredResult>& declared,
      SourceRange range);
  // Converts results to the declared types.
  absl::StatusOr<TermPtr> Finish(const TermPtr& term, const TermType& declared,
                                 SourceRange range);
  absl::StatusOr<Graph> Build(const std::vector<TermPtr>& terms);
  absl::StatusOr<Graph> BuildNamed(
      const std::vector<std::pair<std::string, TermPtr>>& terms);
  absl::StatusOr<TermPtr> Accumulated(const TermPtr& term);

  const Library& library_;
  const Callable& callable_;
  std::shared_ptr<Context> context_;
  const Callees& callees_;
  Elaborator elaborator_;
  GraphBuilder builder_;
  BoundCall call_;
  std::vector<Operand> operands_;
  std::unique_ptr<Scope> body_scope_;  // of the inputs, as bodies see them
  std::map<const Item*, std::unique_ptr<Scope>> part_scopes_;
  std::vector<TermPtr> raw_results_;  // of the body, before Finish
  std::vector<TermPtr> tangents_;     // by operand; null: not made yet
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_COMPILE_OP_H_
