#include "engine/runtime/kernel_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/kernel_parameters.h"
#include "engine/codegen/matrix_product.h"
#include "engine/codegen/numerics.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/ir/copy_graph.h"
#include "engine/ir/interpreter.h"
#include "engine/pipeline/pipeline.h"
#include "ops/check.h"
#include "ops/element_cost.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

// The cost of an element of an array that a kernel reads or writes, in
// operations.
constexpr int kArrayCost = 2;

// Whether all indices of a gather are one: it reads a row, say, in order.
bool ReadsAtOnePlace(const Graph& graph, Value gather) {
  const Shape& indices = graph.type(graph.operands(gather)[1]).shape;
  return std::all_of(indices.begin(), indices.end(),
                     [](const Dim& dim) { return dim == Dim(1); });
}

// The cost of an element of a node: numbers that are repeated, and places that
// loops go through, cost nothing.
int CostOfNode(const Graph& graph, Value v) {
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  switch (primitive) {
    case Primitive::kBroadcastInDim:
    case Primitive::kReshape:
    case Primitive::kTranspose:
    case Primitive::kReverse:
    case Primitive::kSlice:
      return 0;
    case Primitive::kGather:
      if (ReadsAtOnePlace(graph, v)) return 1;
      break;
    default:
      break;
  }
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf:
      return 0;
    case PrimitiveClass::kReduction:
      return 1;
    default:
      return CostOf(primitive);
  }
}

// A group's dims in the terms of the whole graph.
absl::StatusOr<Shape> Outer(const Shape& shape, const ExtractedGroup& group) {
  std::map<std::string, Dim> values;
  for (size_t i = 0; i < group.dims.size(); ++i) {
    values.emplace(absl::StrCat("d", i), group.dims[i]);
  }
  Shape outer;
  for (const Dim& dim : shape) {
    CLEAVE_ASSIGN_OR_RETURN(outer.emplace_back(),
                            dim.CheckedSubstitute(values));
  }
  return outer;
}

// The product in the terms of the whole graph.
absl::StatusOr<MatrixProduct> Outer(MatrixProduct product,
                                    const ExtractedGroup& group) {
  CLEAVE_ASSIGN_OR_RETURN(product.batch, Outer(product.batch, group));
  for (Dim* const dim : {&product.rows, &product.columns, &product.terms}) {
    CLEAVE_ASSIGN_OR_RETURN(const Shape outer, Outer(Shape{*dim}, group));
    *dim = outer[0];
  }
  for (MatrixProduct::Side* const side : {&product.left, &product.right}) {
    CLEAVE_ASSIGN_OR_RETURN(side->of_batch, Outer(side->of_batch, group));
    CLEAVE_ASSIGN_OR_RETURN(
        const Shape outer,
        Outer(Shape{side->offset, side->of_own, side->of_terms}, group));
    side->offset = outer[0];
    side->of_own = outer[1];
    side->of_terms = outer[2];
  }
  return product;
}

// Adds the checks of a group's gathers and divisions to its step. Each node is
// checked once, by the first group that evaluates it.
absl::Status AddChecks(const Graph& graph, const FusionGroup& group,
                       std::set<Value>& checked, Step& step) {
  for (const Value node : CheckedNodes(graph, group.nodes)) {
    if (!CanLower(graph, node).ok()) continue;  // its kernel checks
    if (!checked.insert(node).second) continue;
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<IndexCheck> checks,
                            IndexChecks(graph, node));
    for (const IndexCheck& check : checks) {
      CLEAVE_CHECK(std::find(group.nodes.begin(), group.nodes.end(),
                             check.base) == group.nodes.end())
          << "indices are stored before they are checked";
      step.checks.push_back(
          {check, graph.type(node).shape, IndexError(graph, node)});
    }
  }
  return absl::OkStatus();
}

// Adds the inputs that a group takes weights from which multiply what is
// absent, through movement or not.
void AddFiniteInputs(const Graph& graph, const FusionGroup& group, Step& step) {
  std::vector<Value> stack;
  for (const Value node : group.nodes) {
    for (const int operand : FiniteOperands(graph, node)) {
      stack.push_back(graph.operands(node)[operand]);
    }
  }
  std::set<Value> seen;
  while (!stack.empty()) {
    const Value v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    if (IsMovement(graph, v)) {
      const auto operands = graph.operands(v);
      stack.insert(stack.end(), operands.begin(), operands.end());
      continue;
    }
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i].value != v) continue;
      step.finite_inputs.push_back(static_cast<int>(i));
    }
  }
}

// How many elements of each line of a sort's results anything reads, from the
// first on: of a top-k, k. O(nodes).
int64_t SortedElements(const Graph& graph, Value sort) {
  constexpr int64_t kAll = INT64_MAX;
  const int64_t axis = graph.attributes(sort).GetInt("axis");
  const auto is_result = [&](Value v) {
    return graph.node(v).op == ToOpId(Primitive::kResult) &&
           graph.operands(v)[0] == sort;
  };
  for (const NamedValue& output : graph.outputs()) {
    if (is_result(output.value)) return kAll;
  }
  int64_t most = 0;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value user{id};
    for (const Value operand : graph.operands(user)) {
      if (!is_result(operand)) continue;
      if (graph.node(user).op != ToOpId(Primitive::kSlice)) return kAll;
      const Attributes& slice = graph.attributes(user);
      const std::optional<int64_t> size = slice.GetDims("size")[axis].Value();
      if (!size || slice.GetDims("start")[axis] != Dim(0) ||
          slice.GetDims("stride")[axis] != Dim(1)) {
        return kAll;
      }
      most = std::max(most, *size);
    }
  }
  return most;
}

bool ReadsByIndex(Primitive primitive) {
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kWindow:
    case PrimitiveClass::kContraction:
    case PrimitiveClass::kGather:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<PlannedStep> PlanStep(const Graph& graph, LoweredGroup lowered,
                                     const FusionOptions& fusion,
                                     const std::shared_ptr<Context>& context) {
  const FusionGroup& group = lowered.group;
  const ExtractedGroup& extracted = lowered.extracted;
  PlannedStep result;
  Step& step = result.step;
  step.kind = group.kind;
  step.why = group.why;
  for (const Value v : group.nodes) {
    step.ops.emplace_back(graph.context()->op_name(graph.node(v).op));
  }
  if (!lowered.kernel.has_value()) {
    step.graph = CopyGraph(extracted.graph, context);
    for (size_t i = 0; i < extracted.inputs.size(); ++i) {
      step.inputs.push_back({extracted.inputs[i],
                             graph.type(extracted.inputs[i]).dtype,
                             extracted.input_shapes[i]});
    }
    for (const Value v : group.outputs) {
      step.outputs.push_back({v, graph.type(v).dtype, graph.type(v).shape});
    }
    if (step.kind == GroupKind::kTable) {
      CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> tables,
                              Interpret(step.graph, {}));
      step.table = std::move(tables[0]);
    }
    return result;
  }
  result.kernel = *std::move(lowered.kernel);
  for (uint32_t id = 0; id < result.kernel.size(); ++id) {
    step.reads_by_index |=
        ReadsByIndex(ToPrimitive(result.kernel.node(Value{id}).op));
    // Nothing else computes it.
    const OpId op = result.kernel.node(Value{id}).op;
    if (op == ToOpId(Primitive::kErfinv) ||
        op == ToOpId(Primitive::kPolygamma)) {
      return absl::UnimplementedError(
          absl::StrCat("`", PrimitiveName(ToPrimitive(op)),
                       "`: the rules have no `numeric` for it, which a kernel "
                       "needs"));
    }
  }
  if (fusion.library_products) {
    if (auto product = FindMatrixProduct(result.kernel)) {
      CLEAVE_ASSIGN_OR_RETURN(step.product,
                              Outer(*std::move(product), extracted));
    }
  }
  if (step.kind == GroupKind::kPointwise ||
      step.kind == GroupKind::kReduction) {
    step.cost = static_cast<int>(kArrayCost * (result.kernel.inputs().size() +
                                               result.kernel.outputs().size()));
    for (uint32_t id = 0; id < result.kernel.size(); ++id) {
      const Value v{id};
      step.cost += CostOfNode(result.kernel, v);
      CLEAVE_ASSIGN_OR_RETURN(Shape shape,
                              Outer(result.kernel.type(v).shape, extracted));
      if (std::count(step.shapes.begin(), step.shapes.end(), shape) == 0) {
        step.shapes.push_back(std::move(shape));
      }
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(step.dims,
                          Outer(KernelDims(result.kernel), extracted));
  for (size_t i = 0; i < extracted.inputs.size(); ++i) {
    const TensorType& type =
        result.kernel.type(result.kernel.inputs()[i].value);
    CLEAVE_ASSIGN_OR_RETURN(Shape shape, Outer(type.shape, extracted));
    step.inputs.push_back({extracted.inputs[i], type.dtype, std::move(shape)});
  }
  for (const int i : OutputOrder(result.kernel)) {
    const TensorType& type =
        result.kernel.type(result.kernel.outputs()[i].value);
    CLEAVE_ASSIGN_OR_RETURN(Shape shape, Outer(type.shape, extracted));
    step.outputs.push_back({group.outputs[i], type.dtype, std::move(shape)});
  }
  return result;
}

// Whether the extents of all values follow from those of the inputs: no nonzero
// and no host kernel decides one.
bool HasStaticShapes(const Graph& graph) {
  std::set<std::string> known;
  for (const NamedValue& input : graph.inputs()) {
    for (const Dim& extent : graph.type(input.value).shape) {
      for (const std::string& name : extent.Variables()) known.insert(name);
    }
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const OpId op = graph.node(Value{id}).op;
    if (op == ToOpId(Primitive::kNonzero)) return false;
    if (IsPrimitive(op)) continue;
    for (const TensorType& type : graph.types(Value{id})) {
      for (const Dim& extent : type.shape) {
        for (const std::string& name : extent.Variables()) {
          if (known.count(name) == 0) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

halide_type_t HalideTypeOf(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * ByteSize(dtype));
  if (dtype == DType::kF32 || dtype == DType::kF64) {
    return halide_type_t(halide_type_float, bits);
  }
  if (IsInt(dtype) && IsSigned(dtype)) {
    return halide_type_t(halide_type_int, bits);
  }
  return halide_type_t(halide_type_uint, bits);  // f16 and bf16 by their bits
}

absl::StatusOr<PlannedGraph> PlanSteps(const Graph& graph, const RuleSet& rules,
                                       const FusionOptions& fusion,
                                       const ExtractOptions& extract) {
  PipelineOptions options;
  options.fusion = fusion;
  options.extract = extract;
  CLEAVE_ASSIGN_OR_RETURN(LoweredGraph lowered,
                          LowerPrimitives(graph, rules, options));
  PlannedGraph result;
  result.graph = std::move(lowered.graph);
  result.static_shapes = HasStaticShapes(result.graph);
  const auto context = std::make_shared<Context>();
  std::set<Value> checked;
  bool needs_given = false;
  for (LoweredGroup& group : lowered.groups) {
    const FusionGroup nodes = group.group;
    CLEAVE_ASSIGN_OR_RETURN(
        result.steps.emplace_back(),
        PlanStep(result.graph, std::move(group), fusion, context));
    Step& step = result.steps.back().step;
    CLEAVE_RETURN_IF_ERROR(AddChecks(result.graph, nodes, checked, step));
    AddFiniteInputs(result.graph, nodes, step);
    for (const Value node : nodes.nodes) {
      if (result.graph.node(node).op == ToOpId(Primitive::kSort)) {
        step.sorted = SortedElements(result.graph, node);
      }
    }
    needs_given |= !step.finite_inputs.empty();
  }
  if (needs_given) {
    CLEAVE_ASSIGN_OR_RETURN(const Graph given, ApplyNumerics(graph, rules));
    result.given = CopyGraph(given, context);
  }
  result.graph = CopyGraph(result.graph, context);
  return result;
}

}  // namespace cleave::internal_kernel
