#include "engine/rules/numeric.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "engine/rules/check.h"
#include "ops/budget.h"
#include "ops/infer_type.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// A bound in ulp: a positive number.
absl::StatusOr<double> EvalBound(const Expr& within, Elaborator& elaborator) {
  Scope scope;
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                          elaborator.Eval(within, scope));
  const std::optional<Exact> bound = ToExact(value);
  if (!bound.has_value() || !bound->IsFinite() || !(Exact(0) < *bound)) {
    return elaborator.Fail(DiagnosticKind::kStatic, within.range,
                           "a bound is a positive number of ulp");
  }
  return bound->ToDouble();
}

// Copies graphs of 0-d values into a builder, calls and numerics inlined.
class Flattener {
 public:
  Flattener(const RuleSet& rules, GraphBuilder& builder)
      : rules_(rules), builder_(builder) {}

  // `depth`: of the calls around it.
  absl::StatusOr<std::vector<Value>> Inline(const Graph& graph,
                                            const std::vector<Value>& arguments,
                                            int depth) {
    if (depth > kMaxInliningDepth) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "ops are nested deeper than ", kMaxInliningDepth, " here"));
    }
    std::vector<Value> copies(graph.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      copies[graph.inputs()[i].value.id] = arguments[i];
    }
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const Value v{id};
      if (graph.node(v).op == ToOpId(Primitive::kInput)) continue;
      CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kNodes));
      std::vector<Value> operands;
      for (const Value operand : graph.operands(v)) {
        operands.push_back(copies[operand.id]);
      }
      CLEAVE_ASSIGN_OR_RETURN(copies[id], Copy(graph, v, operands, depth));
      if (builder_.graph().size() > kMaxNumericNodes) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "a numeric has at most ", kMaxNumericNodes, " operations"));
      }
    }
    std::vector<Value> outputs;
    for (const NamedValue& output : graph.outputs()) {
      outputs.push_back(copies[output.value.id]);
    }
    return outputs;
  }

 private:
  absl::StatusOr<Value> Copy(const Graph& graph, Value v,
                             const std::vector<Value>& operands, int depth) {
    const Node& node = graph.node(v);
    if (graph.types(v).size() != 1) return NotPointwise(node.op);
    if (!IsPrimitive(node.op)) {
      CLEAVE_ASSIGN_OR_RETURN(const Graph* body,
                              rules_.Body(RuleSet::SignatureOf(graph, v)));
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<Value> results,
                              Inline(*body, operands, depth + 1));
      return results[0];
    }
    const Primitive primitive = ToPrimitive(node.op);
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
      CLEAVE_ASSIGN_OR_RETURN(
          const NumericBody* numeric,
          rules_.Numeric(primitive, builder_.type(operands[0]).dtype));
      if (numeric != nullptr)
        return builder_.Inline(numeric->graph, operands)[0];
    } else if (primitive != Primitive::kConstant) {
      return NotPointwise(node.op);
    }
    return builder_.AddTyped(node.op, node.attributes, node.type, operands,
                             node.provenance);
  }

  absl::Status NotPointwise(OpId op) const {
    return absl::InvalidArgumentError(
        absl::StrCat("`", rules_.context()->op_name(op),
                     "` is no arithmetic on one element: a numeric consists of "
                     "pointwise primitives"));
  }

  const RuleSet& rules_;
  GraphBuilder& builder_;
};

}  // namespace

absl::StatusOr<NumericBody> CompileNumeric(const Library& library,
                                           const Item& item,
                                           std::shared_ptr<Context> context,
                                           const Callees& callees) {
  Elaborator elaborator(library, *context, absl::StrCat("numeric ", item.name),
                        &callees);
  elaborator.EnterSource(library.SourceOf(item));
  const Primitive primitive = *FindPrimitive(item.name);
  if (item.inputs.size() != static_cast<size_t>(OperandCount(primitive))) {
    return elaborator.Fail(
        DiagnosticKind::kArgument, item.range,
        absl::StrCat("`", item.name, "` has ", OperandCount(primitive),
                     " operands, not ", item.inputs.size()));
  }
  GraphBuilder builder(context);
  Scope scope;
  std::vector<TensorType> types;
  for (const InputDecl& input : item.inputs) {
    CLEAVE_ASSIGN_OR_RETURN(const TensorType type,
                            DeclaredType(input.type, elaborator, scope));
    if (!IsFloat(type.dtype) || !type.shape.empty() || input.is_static ||
        input.optional || !input.variadic_index.empty()) {
      return elaborator.Fail(DiagnosticKind::kType, input.range,
                             "a numeric takes floats, one element each");
    }
    types.push_back(type);
    const Value value = builder.Input(input.name, type);
    scope.Set(input.name, elaborator.terms().InGraph(value, type));
  }
  absl::StatusOr<InferredType> inferred = InferType(primitive, {}, types);
  if (!inferred.ok()) {
    return elaborator.At(inferred.status(), item.range, DiagnosticKind::kType);
  }
  const TensorType& result = inferred->results[0];
  NumericBody numeric;
  CLEAVE_ASSIGN_OR_RETURN(numeric.ulp, EvalBound(*item.within, elaborator));
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                          elaborator.EvalBody(*item.body, scope));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr term,
                          elaborator.ToTerm(value, item.body->range));
  if (!DTypeVariable::Unify(term->dtype, DTypeVariable::Known(result.dtype))) {
    return elaborator.Fail(
        DiagnosticKind::kType, item.body->range,
        absl::StrCat("the body is ", DTypeName(ResolvedDType(*term)), ", not ",
                     DTypeName(result.dtype)));
  }
  if (!term->shape.empty()) {
    return elaborator.Fail(DiagnosticKind::kShape, item.body->range,
                           "the body of a numeric is one element");
  }
  TermLowerer lowerer(builder, &callees);
  CLEAVE_ASSIGN_OR_RETURN(const Value y, lowerer.Lower(term));
  CLEAVE_ASSIGN_OR_RETURN(numeric.graph, std::move(builder).Build({{"y", y}}));
  return numeric;
}

absl::StatusOr<Graph> FlattenNumeric(const Graph& graph, const RuleSet& rules) {
  GraphBuilder builder(graph.context());
  std::vector<Value> inputs;
  for (const NamedValue& input : graph.inputs()) {
    inputs.push_back(builder.Input(input.name, graph.type(input.value)));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Value> outputs,
                          Flattener(rules, builder).Inline(graph, inputs, 0));
  return std::move(builder).Build({{graph.outputs()[0].name, outputs[0]}});
}

}  // namespace cleave
