#include "transforms/vmap/identity.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/substitute.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/rewrite/simplify.h"
#include "engine/rules/call_of.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/vmap/batch.h"
#include "transforms/vmap/identity_proposals.h"
#include "transforms/vmap/parallel_axis.h"
#include "transforms/vmap/unit_axes.h"

namespace cleave {
namespace {

// The value of Memo::proposal that stands for the merge into the first axis.
constexpr int kMerged = kMaxIdentityProposals;

// How far a proposal came; of the farthest the reason is told.
enum class Stage { kCall, kTypes, kGuards, kNodes, kRepeats };

struct Refusal {
  Stage stage = Stage::kCall;
  std::string why;
};

std::string FirstLine(const absl::Status& status) {
  const absl::string_view message = status.message();
  return std::string(message.substr(0, message.find('\n')));
}

bool Contains(const std::vector<ShapeGuard>& guards, const ShapeGuard& guard) {
  return std::any_of(guards.begin(), guards.end(), [&](const ShapeGuard& g) {
    return g.lhs == guard.lhs && g.op == guard.op && g.rhs == guard.rhs;
  });
}

// The substitution that the equalities among `guards` allow: a variable that is
// one side is replaced by the other side.
DimSubstitution Equalities(const std::vector<ShapeGuard>& guards) {
  DimSubstitution equal;
  for (const ShapeGuard& guard : guards) {
    if (guard.op != CompareOp::kEq) continue;
    Dim a = guard.lhs.Substitute(equal);
    Dim b = guard.rhs.Substitute(equal);
    for (int side = 0; side < 2; ++side, std::swap(a, b)) {
      const std::set<std::string> names = a.Variables();
      if (names.size() != 1 || a != Dim::Variable(*names.begin()) ||
          b.Variables().count(*names.begin()) > 0) {
        continue;
      }
      const DimSubstitution one = {{*names.begin(), b}};
      for (auto& [name, value] : equal) value = value.Substitute(one);
      equal[*names.begin()] = b;
      break;
    }
  }
  return equal;
}

std::string Describe(const ShapeGuard& guard) {
  return guard.op == CompareOp::kEq
             ? absl::StrCat("it would need ", guard.lhs.ToString(),
                            " == ", guard.rhs.ToString())
             : absl::StrCat("it would need a guard: ", guard.why);
}

// `reduce_sum(axes: [0])` of f32[n].
std::string Describe(const Graph& graph, Value v) {
  const std::string attributes = graph.attributes(v).ToString();
  std::string text =
      absl::StrCat("`", graph.context()->op_name(graph.node(v).op),
                   attributes.empty() ? "" : "(", attributes,
                   attributes.empty() ? "" : ")", "`");
  if (!graph.operands(v).empty()) {
    absl::StrAppend(&text, " of ",
                    graph.type(graph.operands(v).back()).ToString());
  }
  return text;
}

// One signature to batch.
class Search {
 public:
  Search(const Signature& signature, const std::vector<bool>& batched,
         const Dim& batch, const BatchRule& derived, const RuleSet& rules)
      : signature_(signature),
        batched_(batched),
        batch_(batch),
        derived_(derived),
        rules_(rules),
        context_(*rules.context()),
        attributes_(context_.attributes(signature.attributes)) {
    for (TypeId type : signature.operands) {
      types_.push_back(context_.types(type)[0]);
    }
  }

  const std::vector<TensorType>& types() const { return types_; }
  const Refusal& refusal() const { return refusal_; }

  // Whether there is anything to compare with; else refusal() says why not.
  bool Begin() {
    const absl::StatusOr<Graph> one = CallOf(rules_, signature_);
    if (!one.ok()) {
      Refuse(Stage::kCall, FirstLine(one.status()));
      return false;
    }
    one_guards_ = one->guards();
    return true;
  }

  std::vector<IdentityProposal> Proposals() const {
    const Item* item = rules_.Find(context_.op_name(signature_.op));
    return ProposeIdentity(*item, attributes_, types_, batched_, batch_);
  }

  std::optional<BatchRule> Try(const IdentityProposal& proposal) {
    if (std::optional<Graph> graph = TryInOneStep(proposal)) {
      return Rule(*std::move(graph));
    }
    if (!CompareInPrimitives()) return std::nullopt;
    std::optional<Candidate> candidate = Propose(proposal);
    if (!candidate.has_value() || !SameMeaning(*candidate, proposal)) {
      return std::nullopt;
    }
    return Rule(std::move(candidate->graph));
  }

  // The call with the batch merged into the first axis.
  std::optional<BatchRule> TryMerged() {
    if (!IsParallelInFront(signature_, batched_, derived_.batched, rules_) ||
        !CompareInPrimitives()) {
      return std::nullopt;
    }
    Signature called = signature_;
    GraphBuilder builder(rules_.context());
    std::vector<Value> operands = AddInputsOf(builder, derived_.graph);
    builder.SetProvenance(Provenance());
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!batched_[i]) continue;
      Shape shape = types_[i].shape;
      shape[0] = batch_ * shape[0];
      operands[i] = builder.Reshape(operands[i], shape);
      called.operands[i] = builder.graph().node(operands[i]).type;
    }
    const absl::StatusOr<Graph> call = CallOf(rules_, called);
    if (!call.ok()) return std::nullopt;
    const absl::StatusOr<Graph> expanded = Expand(*call, rules_);
    if (!expanded.ok()) return std::nullopt;
    if (NewGuard(*call, *expanded)) return std::nullopt;
    std::vector<Value> results = AddCall(builder, *call, operands);
    if (results.size() != derived_.batched.size()) return std::nullopt;
    for (size_t j = 0; j < results.size(); ++j) {
      const Shape& shape =
          derived_.graph.type(derived_.graph.outputs()[j].value).shape;
      Shape merged = shape;
      if (derived_.batched[j]) {
        merged.erase(merged.begin());
        merged[0] = batch_ * merged[0];
      }
      if (builder.type(results[j]).shape != merged) return std::nullopt;
      results[j] = builder.Reshape(results[j], shape);
    }
    return Rule(Finish(std::move(builder), results));
  }

 private:
  // A proposed call: alone, and with what moves axes around it.
  struct Candidate {
    Graph call;
    Graph graph;
  };

  // The meaning that a call is to have: the transform of the body, with its
  // guards and what they make equal.
  struct Comparison {
    Graph expanded;                  // unified
    std::vector<ShapeGuard> guards;  // unified
    DimSubstitution equal;
    absl::Status status;
    Stage stage = Stage::kCall;  // of the status
  };

  Comparison ComparisonOf(const absl::StatusOr<Graph>& expanded) const {
    Comparison made;
    made.status = expanded.status();
    if (!expanded.ok()) return made;
    made.guards = one_guards_;
    made.guards.insert(made.guards.end(), expanded->guards().begin(),
                       expanded->guards().end());
    made.equal = Equalities(made.guards);
    for (ShapeGuard& guard : made.guards) {
      guard = SubstituteDims(guard, made.equal);
    }
    absl::StatusOr<Graph> unified = SubstituteDims(*expanded, made.equal);
    made.status = unified.status();
    made.stage = Stage::kTypes;
    if (unified.ok()) made.expanded = *std::move(unified);
    return made;
  }

  bool CompareInPrimitives() {
    if (!in_primitives_.has_value()) {
      in_primitives_ = ComparisonOf(InPrimitives(derived_.graph, rules_));
    }
    with_ = &*in_primitives_;
    if (with_->status.ok()) return true;
    Refuse(with_->stage, FirstLine(with_->status));
    return false;
  }

  // The proposal, if the op's body, with its calls as calls, is what the
  // transform of the body is, call for call: then so are their expansions, and
  // their guards. A chain of ops that call each other costs a step for each so,
  // rather than an expansion of each. Nothing else is said by nullopt.
  std::optional<Graph> TryInOneStep(const IdentityProposal& proposal) {
    if (!in_one_step_.has_value()) {
      in_one_step_ = ComparisonOf(Simplify(derived_.graph, rules_));
    }
    with_ = &*in_one_step_;
    if (!with_->status.ok()) return std::nullopt;
    const Refusal refusal = refusal_;
    std::optional<Candidate> candidate = Propose(proposal);
    refusal_ = refusal;
    if (!candidate.has_value() || !SameInOneStep(*candidate)) {
      return std::nullopt;
    }
    return std::move(candidate->graph);
  }

  bool SameInOneStep(const Candidate& candidate) const {
    InPrimitivesOptions one_step;
    one_step.expand.only = {std::string(context_.op_name(signature_.op))};
    const absl::StatusOr<Graph> expanded =
        InPrimitives(candidate.graph, rules_, one_step);
    if (!expanded.ok() || NewGuard(candidate.call, *expanded).has_value()) {
      return false;
    }
    const absl::StatusOr<Graph> unified = Unified(*expanded);
    if (!unified.ok()) return false;
    GraphBuilder builder(rules_.context());
    const std::vector<Value> inputs = AddInputsOf(builder, *unified);
    const std::vector<Value> wanted = builder.Inline(with_->expanded, inputs);
    return builder.Inline(*unified, inputs) == wanted && builder.status().ok();
  }

  std::optional<Candidate> Propose(const IdentityProposal& proposal) {
    Signature called = signature_;
    called.attributes = proposal.attributes.empty()
                            ? kNoAttributes
                            : context_.Intern(proposal.attributes);
    for (size_t i = 0; i < types_.size(); ++i) {
      TensorType type = types_[i];
      const OperandForm& form = proposal.operands[i];
      type.shape = FormShape(i, form);
      called.operands[i] = context_.Intern(type);
    }
    const absl::StatusOr<Graph> call = CallOf(rules_, called);
    if (!call.ok()) {
      Refuse(Stage::kCall, FirstLine(call.status()));
      return std::nullopt;
    }
    if (call->outputs().size() != derived_.graph.outputs().size()) {
      Refuse(Stage::kTypes, "it would have other results");
      return std::nullopt;
    }
    GraphBuilder builder(rules_.context());
    std::vector<Value> operands = AddInputsOf(builder, derived_.graph);
    builder.SetProvenance(Provenance());
    for (size_t i = 0; i < operands.size(); ++i) {
      if (proposal.operands[i].repeated) {
        operands[i] = InFront(builder, {operands[i], false}, batch_);
      }
      operands[i] =
          builder.Reshape(operands[i], FormShape(i, proposal.operands[i]));
    }
    std::vector<Value> results = AddCall(builder, *call, operands);
    for (size_t j = 0; j < results.size(); ++j) {
      const TensorType& wanted =
          derived_.graph.type(derived_.graph.outputs()[j].value);
      const TensorType given = builder.type(results[j]);
      if (!ToType(builder, wanted, results[j])) {
        Refuse(Stage::kTypes, absl::StrCat("a result is ", given.ToString(),
                                           ", not ", wanted.ToString()));
        return std::nullopt;
      }
    }
    return Candidate{*call, Finish(std::move(builder), results)};
  }

  void Refuse(Stage stage, std::string why) {
    if (!refusal_.why.empty() && stage <= refusal_.stage) return;
    refusal_ = {stage, std::move(why)};
  }

  ProvenanceId Provenance() const {
    return context_.Intern(cleave::Provenance{
        absl::StrCat("vmap ", context_.op_name(signature_.op)), "", 0});
  }

  Shape FormShape(size_t operand, const OperandForm& form) const {
    Shape shape = types_[operand].shape;
    shape.insert(shape.begin(), form.units_behind, Dim(1));
    if (form.unit_at_end) shape.push_back(1);
    if (batched_[operand] || form.repeated) {
      shape.insert(shape.begin(), batch_);
    }
    return shape;
  }

  // The node of `call`, on these operands.
  std::vector<Value> AddCall(GraphBuilder& builder, const Graph& call,
                             const std::vector<Value>& operands) const {
    Value node = call.outputs()[0].value;
    if (call.node(node).op == ToOpId(Primitive::kResult)) {
      node = call.operands(node)[0];
    }
    const Node& n = call.node(node);
    const Value copy = builder.AddTyped(n.op, n.attributes, n.type, operands,
                                        builder.provenance());
    std::vector<Value> results;
    for (size_t j = 0; j < call.types(node).size(); ++j) {
      results.push_back(builder.Result(copy, static_cast<int>(j)));
    }
    return results;
  }

  // The extents with what the guards say is equal made one expression.
  Shape Unified(Shape shape) const {
    for (Dim& extent : shape) extent = extent.Substitute(with_->equal);
    return shape;
  }
  absl::StatusOr<Graph> Unified(const Graph& graph) const {
    return SubstituteDims(graph, with_->equal);
  }

  // The first guard of the call that one example does not need.
  std::optional<ShapeGuard> NewGuard(const Graph& call,
                                     const Graph& expanded) const {
    for (const auto* guards : {&call.guards(), &expanded.guards()}) {
      for (const ShapeGuard& guard : *guards) {
        const ShapeGuard unified = SubstituteDims(guard, with_->equal);
        if (unified.op == CompareOp::kEq && unified.lhs == unified.rhs) {
          continue;
        }
        if (!Contains(with_->guards, unified)) return unified;
      }
    }
    return std::nullopt;
  }

  // Brings `value` to the type: the batch may stand elsewhere, or extents 1
  // beside it, or an extent be another expression that a guard makes equal.
  bool ToType(GraphBuilder& builder, const TensorType& wanted,
              Value& value) const {
    if (builder.type(value).dtype != wanted.dtype) return false;
    const Shape given = Unified(builder.type(value).shape);
    const Shape shape = Unified(wanted.shape);
    if (WithoutUnitAxes(given) == WithoutUnitAxes(shape)) {
      value = emit::WithShape(builder, value, wanted.shape);
      return true;
    }
    for (size_t axis = 1; axis < given.size(); ++axis) {
      if (given[axis] != batch_) continue;
      Shape moved = given;
      std::rotate(moved.begin(), moved.begin() + axis,
                  moved.begin() + axis + 1);
      if (moved != shape) continue;
      value = emit::WithShape(
          builder, emit::MoveAxis(builder, value, static_cast<int>(axis), 0),
          wanted.shape);
      return true;
    }
    return false;
  }

  Graph Finish(GraphBuilder builder, const std::vector<Value>& results) const {
    std::vector<NamedValue> outputs;
    for (size_t j = 0; j < results.size(); ++j) {
      outputs.push_back({derived_.graph.outputs()[j].name, results[j]});
    }
    return *std::move(builder).Build(std::move(outputs));
  }

  BatchRule Rule(Graph graph) const {
    BatchRule rule;
    rule.graph = std::move(graph);
    rule.batched = derived_.batched;
    rule.kind = BatchRule::Kind::kKept;
    return rule;
  }

  // Whether the candidate expands to the nodes that the body's transform does,
  // under no other guards.
  bool SameMeaning(const Candidate& candidate,
                   const IdentityProposal& proposal) {
    absl::StatusOr<Graph> expanded = InPrimitives(candidate.graph, rules_);
    if (!expanded.ok()) {
      Refuse(Stage::kTypes, FirstLine(expanded.status()));
      return false;
    }
    if (const auto guard = NewGuard(candidate.call, *expanded)) {
      Refuse(Stage::kGuards, Describe(*guard));
      return false;
    }
    const absl::StatusOr<Graph> unification = Unified(*expanded);
    if (!unification.ok()) {
      Refuse(Stage::kTypes, FirstLine(unification.status()));
      return false;
    }
    const Graph& unified = *unification;
    GraphBuilder builder(rules_.context());
    std::vector<Value> inputs;
    absl::flat_hash_set<uint32_t> dependent;  // on what is batched
    for (size_t i = 0; i < unified.inputs().size(); ++i) {
      const NamedValue& input = unified.inputs()[i];
      inputs.push_back(builder.Input(input.name, unified.type(input.value)));
      if (batched_[i]) dependent.insert(inputs.back().id);
    }
    const std::vector<Value> wanted =
        InlineWithoutUnitAxes(builder, with_->expanded, inputs);
    const int64_t before = builder.graph().size();
    if (InlineWithoutUnitAxes(builder, unified, inputs) == wanted) {
      return true;
    }
    const Graph& graph = builder.graph();
    if (before == graph.size()) {
      Refuse(Stage::kNodes, "its results are others");
      return false;
    }
    const Value differs = FirstDifference(graph, before);
    for (uint32_t id = 0; id <= differs.id; ++id) {
      for (Value operand : graph.operands(Value{id})) {
        if (dependent.contains(operand.id)) dependent.insert(id);
      }
    }
    const bool repeats =
        std::any_of(proposal.operands.begin(), proposal.operands.end(),
                    [](const OperandForm& form) { return form.repeated; });
    if (repeats && !dependent.contains(differs.id)) {
      Refuse(Stage::kRepeats,
             absl::StrCat("with what is not batched repeated it would compute ",
                          Describe(graph, differs),
                          " for each example, which they share"));
    } else {
      Refuse(Stage::kNodes,
             absl::StrCat("it would compute ", Describe(graph, differs),
                          ", which no example does"));
    }
    return false;
  }

  // The first node from `before` on that computes something; the first one
  // where all move only.
  static Value FirstDifference(const Graph& graph, int64_t before) {
    for (int64_t id = before; id < graph.size(); ++id) {
      const Value v{static_cast<uint32_t>(id)};
      if (!IsPrimitive(graph.node(v).op)) return v;
      const PrimitiveClass c = ClassOf(ToPrimitive(graph.node(v).op));
      if (c != PrimitiveClass::kLeaf && c != PrimitiveClass::kMovement &&
          c != PrimitiveClass::kProjection) {
        return v;
      }
    }
    return Value{static_cast<uint32_t>(before)};
  }

  const Signature& signature_;
  const std::vector<bool>& batched_;
  const Dim& batch_;
  const BatchRule& derived_;
  const RuleSet& rules_;
  Context& context_;
  const Attributes& attributes_;
  std::vector<TensorType> types_;
  std::vector<ShapeGuard> one_guards_;  // of one example's call
  std::optional<Comparison> in_one_step_;
  std::optional<Comparison> in_primitives_;
  const Comparison* with_ = nullptr;  // the one of these that is in use
  Refusal refusal_;
};

}  // namespace

IdentityAnswer IdentityFinder::Find(const Signature& signature,
                                    const std::vector<bool>& batched,
                                    const Dim& batch,
                                    const BatchRule& derived) {
  const absl::string_view op = rules_.context()->op_name(signature.op);
  if (rules_.Find(op) == nullptr) {
    return {std::nullopt, "it is itself a transform of an op"};
  }
  Search search(signature, batched, batch, derived, rules_);
  // Extents by when each first occurs; 0, 1 and the batch are themselves.
  Key key = {signature.op, signature.attributes};
  absl::flat_hash_map<Dim, int64_t> extents = {{Dim(0), -1}, {Dim(1), -2}};
  extents.emplace(batch, -3);
  for (size_t i = 0; i < batched.size(); ++i) {
    const TensorType& type = search.types()[i];
    key.push_back(batched[i] ? -4 : -5);
    key.push_back(static_cast<int64_t>(type.dtype));
    key.push_back(type.rank());
    for (const Dim& extent : type.shape) {
      key.push_back(
          extents.emplace(extent, static_cast<int64_t>(extents.size()))
              .first->second);
    }
  }
  const std::shared_ptr<const Memo> known = memos_.Find(key);
  if (known != nullptr && known->proposal < 0) {
    return {std::nullopt, known->why};
  }
  if (!search.Begin()) return {std::nullopt, search.refusal().why};
  const std::vector<IdentityProposal> proposals = search.Proposals();
  const auto attempt = [&](int i) -> IdentityAnswer {
    if (i == kMerged) {
      return {search.TryMerged(), "the batch merged into the first axis"};
    }
    return {search.Try(proposals[i]), proposals[i].how};
  };
  if (known != nullptr) {
    IdentityAnswer answer = attempt(known->proposal);
    if (answer.call) return answer;
  }
  for (int i = 0; i <= static_cast<int>(proposals.size()); ++i) {
    const int number = i < static_cast<int>(proposals.size()) ? i : kMerged;
    IdentityAnswer answer = attempt(number);
    if (!answer.call) continue;
    memos_.Add(key, {number, ""});
    return answer;
  }
  memos_.Add(key, {-1, search.refusal().why});
  return {std::nullopt, search.refusal().why};
}

}  // namespace cleave
