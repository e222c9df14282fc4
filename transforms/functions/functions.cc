#include "transforms/functions/functions.h"

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/eager/atomic.h"
#include "engine/eager/call.h"
#include "engine/eager/current_rules.h"
#include "engine/eager/trace_scope.h"
#include "ops/status_macros.h"
#include "transforms/aot/traced_program.h"
#include "transforms/functions/derived_graphs.h"
#include "transforms/jvp/jvp.h"
#include "transforms/partition/joint_graph.h"
#include "transforms/partition/partition.h"
#include "transforms/table/names.h"
#include "transforms/vjp/vjp.h"

namespace cleave::functional {

absl::Status MapAxes::Append(const TreeShape& shape, absl::string_view what,
                             std::vector<int>* axes) const {
  if (!has_children_) {
    axes->insert(axes->end(), shape.leaves(), axis_);
    return absl::OkStatus();
  }
  if (children_.size() != shape.children().size() ||
      shape.kind() == TreeKind::kLeaf) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", children_.size(),
                     " entries where the tree is ", shape.ToString()));
  }
  for (size_t i = 0; i < children_.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(
        children_[i].Append(shape.children()[i], what, axes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> MapAxes::PerLeaf(
    const TreeShape& shape, absl::string_view what) const {
  std::vector<int> axes;
  CLEAVE_RETURN_IF_ERROR(Append(shape, what, &axes));
  return axes;
}

namespace internal_functions {

namespace {

// A function that ran on traced tensors.
struct TracedCall {
  // Inputs: the leaves of the arguments, then captured tensors. Outputs: the
  // leaves of the result.
  Graph graph;
  TreeShape results = TreeShape::Leaf();
  std::vector<Tensor> inputs;
  std::shared_ptr<const RuleSet> rules;
};

// The name of a leaf of the arguments in messages: `argument 0.weight`.
std::string ArgumentName(const TreeShape& arguments, size_t leaf) {
  return absl::StrCat("argument ", aot::LeafNames(arguments, "")[leaf]);
}

absl::Status CheckLeaves(const Tree& arguments) {
  for (size_t i = 0; i < arguments.leaves().size(); ++i) {
    const Tensor& leaf = arguments.leaves()[i];
    if (leaf.valid()) continue;
    if (leaf.is_number()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ArgumentName(arguments.shape(), i),
                       " is a number without a dtype: give it one by Full"));
    }
    return leaf.status();  // of an op before this one
  }
  return absl::OkStatus();
}

absl::StatusOr<TracedCall> TraceCall(const TreeFunction& fn,
                                     const Tree& arguments,
                                     const std::vector<TensorType>& types) {
  TracedCall call;
  CLEAVE_ASSIGN_OR_RETURN(call.rules, CurrentRules());
  aot::TraceOptions options;
  options.differentiated = true;  // a value for each result
  CLEAVE_ASSIGN_OR_RETURN(
      const aot::TracedProgram program,
      aot::TraceProgram(fn, arguments.shape(), arguments.leaves(), types,
                        call.rules, options));
  for (size_t i = 0; i < program.mutations.size(); ++i) {
    if (program.mutations[i] == aot::MutationKind::kNotMutated) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a function that is transformed writes its ",
        ArgumentName(arguments.shape(), i), ": it can write a Clone()"));
  }
  std::vector<size_t> places;
  for (const aot::TracedOutput& output : program.outputs) {
    places.push_back(output.value);
  }
  call.graph = WithOutputsAt(program.graph, places);
  call.results = program.results;
  for (const aot::TracedInput& input : program.inputs) {
    call.inputs.push_back(input.leaf < 0 ? input.captured
                                         : arguments.leaves()[input.leaf]);
  }
  return call;
}

std::vector<TensorType> TypesOf(const Tree& arguments) {
  std::vector<TensorType> types;
  for (const Tensor& leaf : arguments.leaves()) types.push_back(leaf.type());
  return types;
}

// Under a trace the nodes join it; else the session runs them as one graph.
absl::StatusOr<std::vector<Tensor>> RunGraph(
    const Graph& graph, const std::vector<Tensor>& inputs) {
  if (graph.outputs().empty()) return std::vector<Tensor>();
  AtomicScope scope;
  absl::StatusOr<std::vector<Tensor>> outputs = CallGraph(graph, inputs);
  const absl::Status ended = scope.End();
  CLEAVE_RETURN_IF_ERROR(outputs.status());
  CLEAVE_RETURN_IF_ERROR(ended);
  return outputs;
}

std::string Describe(absl::string_view transform,
                     const std::vector<bool>& active) {
  std::string text(transform);
  for (const bool is_active : active) text += is_active ? '1' : '0';
  return text + ";";
}

bool IsInexact(const Tensor& x) {
  return InClass(x.dtype(), DTypeClass::kInexact);
}

// Whether a leaf is Tensor(), which stands for zeros.
bool IsAbsent(const Tensor& leaf) {
  return !leaf.is_number() && !leaf.valid() &&
         leaf.status() == Tensor().status();
}

// Tangents or cotangents must have the types of their values. `which` is
// "tangent" or "cotangent".
absl::Status CheckLinear(const Tensor& given, const TensorType& value,
                         absl::string_view which, size_t number) {
  if (given.is_number()) {
    return absl::InvalidArgumentError(
        absl::StrCat(which, " ", number,
                     " is a number without a dtype: give it one by "
                     "Full"));
  }
  CLEAVE_RETURN_IF_ERROR(given.status());
  if (!InClass(value.dtype, DTypeClass::kInexact)) {
    return absl::InvalidArgumentError(
        absl::StrCat(which, " ", number, " is of a value of ", value.ToString(),
                     ", which has none"));
  }
  if (given.type() == value) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(which, " ", number, " is ", given.type().ToString(),
                   ", its value ", value.ToString()));
}

}  // namespace

absl::StatusOr<Tree> CallVmap(const TreeFunction& fn, const Tree& arguments,
                              const MapAxes& in_axes, const MapAxes& out_axes) {
  CLEAVE_RETURN_IF_ERROR(CheckLeaves(arguments));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<int> axes,
                          in_axes.PerLeaf(arguments.shape(), "in_axes"));
  std::optional<Dim> batch;
  size_t first = 0;
  std::vector<TensorType> types;
  for (size_t i = 0; i < axes.size(); ++i) {
    TensorType type = arguments.leaves()[i].type();
    if (axes[i] >= 0) {
      if (axes[i] >= type.rank()) {
        return absl::InvalidArgumentError(
            absl::StrCat("in_axes has axis ", axes[i], " for ",
                         ArgumentName(arguments.shape(), i), ", which is ",
                         type.ToString()));
      }
      const Dim extent = type.shape[axes[i]];
      if (batch.has_value() && *batch != extent) {
        return absl::InvalidArgumentError(absl::StrCat(
            ArgumentName(arguments.shape(), i), " has ", extent.ToString(),
            " examples, ", ArgumentName(arguments.shape(), first), " has ",
            batch->ToString()));
      }
      if (!batch.has_value()) first = i;
      batch = extent;
      type.shape.erase(type.shape.begin() + axes[i]);
    } else if (axes[i] != kNotMapped && axes[i] != kSplit) {
      return absl::InvalidArgumentError(absl::StrCat(
          "in_axes has axis ", axes[i], " for ",
          ArgumentName(arguments.shape(), i), ": axes count from 0"));
    }
    types.push_back(std::move(type));
  }
  if (!batch.has_value()) {
    return absl::InvalidArgumentError(
        "in_axes names no axis: no argument tells the number of examples");
  }
  CLEAVE_ASSIGN_OR_RETURN(const TracedCall call,
                          TraceCall(fn, arguments, types));
  axes.resize(call.inputs.size(), kNotMapped);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> results,
                          out_axes.PerLeaf(call.results, "out_axes"));
  CLEAVE_ASSIGN_OR_RETURN(
      const auto derived,
      DerivedGraphs::Of(call.rules)
          .Get(call.graph,
               absl::StrCat("vmap ", batch->ToString(), " ",
                            absl::StrJoin(axes, ","), " ",
                            absl::StrJoin(results, ","), ";"),
               [&]() -> absl::StatusOr<DerivedGraph> {
                 DerivedGraph made;
                 CLEAVE_ASSIGN_OR_RETURN(
                     made.graph, cleave::Vmap(call.graph, axes, *batch, results,
                                              *call.rules));
                 return made;
               }));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          RunGraph(derived->graph, call.inputs));
  return Unflatten(call.results, std::move(outputs));
}

absl::StatusOr<Tree> CallJvp(const TreeFunction& fn, const Tree& arguments,
                             const Tree& tangents) {
  CLEAVE_RETURN_IF_ERROR(CheckLeaves(arguments));
  CLEAVE_RETURN_IF_ERROR(
      CheckShape(tangents, arguments.shape(), "the tuple of the tangents"));
  const std::vector<TensorType> types = TypesOf(arguments);
  std::vector<bool> active(types.size());
  std::vector<Tensor> given;
  for (size_t i = 0; i < active.size(); ++i) {
    const Tensor& tangent = tangents.leaves()[i];
    if (IsAbsent(tangent)) continue;
    CLEAVE_RETURN_IF_ERROR(CheckLinear(tangent, types[i], "tangent", i));
    active[i] = true;
    given.push_back(tangent);
  }
  CLEAVE_ASSIGN_OR_RETURN(TracedCall call, TraceCall(fn, arguments, types));
  active.resize(call.inputs.size());
  CLEAVE_ASSIGN_OR_RETURN(
      const auto derived,
      DerivedGraphs::Of(call.rules)
          .Get(call.graph, Describe("jvp ", active),
               [&]() -> absl::StatusOr<DerivedGraph> {
                 CLEAVE_ASSIGN_OR_RETURN(
                     JvpResult jvp,
                     cleave::Jvp(call.graph, active, *call.rules));
                 DerivedGraph made;
                 made.graph = std::move(jvp.graph);
                 made.has_tangent = std::move(jvp.has_tangent);
                 return made;
               }));
  call.inputs.insert(call.inputs.end(), given.begin(), given.end());
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          RunGraph(derived->graph, call.inputs));
  const size_t count = derived->has_tangent.size();
  std::vector<Tensor> values(outputs.begin(), outputs.begin() + count);
  std::vector<Tensor> result_tangents;
  size_t next = count;
  for (const bool has_tangent : derived->has_tangent) {
    result_tangents.push_back(has_tangent ? outputs[next++] : Tensor());
  }
  CLEAVE_ASSIGN_OR_RETURN(const Tree value,
                          Unflatten(call.results, std::move(values)));
  CLEAVE_ASSIGN_OR_RETURN(const Tree tangent,
                          Unflatten(call.results, std::move(result_tangents)));
  return Tree::Tuple({value, tangent});
}

absl::StatusOr<Tree> CallGrad(const TreeFunction& fn, const Tree& arguments,
                              const std::vector<size_t>& numbers,
                              bool with_value) {
  CLEAVE_RETURN_IF_ERROR(CheckLeaves(arguments));
  // The leaves of each argument.
  const std::vector<TreeShape>& shapes = arguments.shape().children();
  std::vector<size_t> begin = {0};
  for (const TreeShape& shape : shapes) {
    begin.push_back(begin.back() + shape.leaves());
  }
  std::vector<bool> active(arguments.leaves().size());
  for (const size_t number : numbers) {
    bool any = false;
    for (size_t i = begin[number]; i < begin[number + 1]; ++i) {
      active[i] = IsInexact(arguments.leaves()[i]);
      any |= active[i];
    }
    if (any) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "argument ", number, " has no tensor with a gradient",
        shapes[number].kind() == TreeKind::kLeaf
            ? absl::StrCat(": it is ",
                           arguments.leaves()[begin[number]].type().ToString())
            : ""));
  }
  CLEAVE_ASSIGN_OR_RETURN(const TracedCall call,
                          TraceCall(fn, arguments, TypesOf(arguments)));
  active.resize(call.inputs.size());
  const std::vector<NamedValue>& results = call.graph.outputs();
  if (results.size() != 1 || call.graph.type(results[0].value).rank() != 0 ||
      !InClass(call.graph.type(results[0].value).dtype, DTypeClass::kFloat)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a gradient is that of one real float scalar, and the function gives ",
        results.size() == 1 ? call.graph.type(results[0].value).ToString()
                            : call.results.ToString()));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const auto derived,
      DerivedGraphs::Of(call.rules)
          .Get(call.graph,
               Describe(with_value ? "value_and_grad " : "grad ", active),
               [&]() -> absl::StatusOr<DerivedGraph> {
                 CLEAVE_ASSIGN_OR_RETURN(
                     const VjpResult vjp,
                     cleave::Vjp(call.graph, active, *call.rules));
                 GraphBuilder builder(call.graph.context());
                 std::vector<Value> inputs = AddInputsOf(builder, call.graph);
                 inputs.push_back(builder.Constant(
                     Exact(1), call.graph.type(results[0].value).dtype));
                 const std::vector<Value> values =
                     builder.Inline(vjp.graph, inputs);
                 DerivedGraph made;
                 CLEAVE_ASSIGN_OR_RETURN(
                     made.graph, std::move(builder).Build(Numbered(
                                     {values.begin() + (with_value ? 0 : 1),
                                      values.end()})));
                 return made;
               }));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          RunGraph(derived->graph, call.inputs));
  // Per leaf of the arguments, its gradient.
  std::vector<Tensor> leaves(arguments.leaves().size());
  size_t next = with_value ? 1 : 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (active[i]) leaves[i] = outputs[next++];
  }
  std::vector<Tree> gradients;
  for (const size_t number : numbers) {
    CLEAVE_ASSIGN_OR_RETURN(
        Tree gradient,
        Unflatten(shapes[number], {leaves.begin() + begin[number],
                                   leaves.begin() + begin[number + 1]}));
    gradients.push_back(std::move(gradient));
  }
  Tree all = gradients.size() == 1 ? std::move(gradients[0])
                                   : Tree::Tuple(std::move(gradients));
  if (!with_value) return all;
  return Tree::Tuple({Tree(outputs[0]), std::move(all)});
}

class Residuals {
 public:
  std::shared_ptr<const DerivedGraph> derived;
  std::vector<Tensor> saved;
  TreeShape arguments = TreeShape::Leaf();
  std::vector<bool> active;  // per leaf of the arguments
  TreeShape results = TreeShape::Leaf();
  std::vector<TensorType> types;  // of the leaves of the results
};

absl::StatusOr<ValueAndResiduals> CallVjp(const TreeFunction& fn,
                                          const Tree& arguments) {
  CLEAVE_RETURN_IF_ERROR(CheckLeaves(arguments));
  auto residuals = std::make_shared<Residuals>();
  residuals->arguments = arguments.shape();
  for (const Tensor& leaf : arguments.leaves()) {
    residuals->active.push_back(IsInexact(leaf));
  }
  CLEAVE_ASSIGN_OR_RETURN(const TracedCall call,
                          TraceCall(fn, arguments, TypesOf(arguments)));
  aot::JointGraphOptions options;
  options.active = residuals->active;
  options.active.resize(call.inputs.size());
  CLEAVE_ASSIGN_OR_RETURN(
      residuals->derived,
      DerivedGraphs::Of(call.rules)
          .Get(call.graph, Describe("vjp ", options.active),
               [&]() -> absl::StatusOr<DerivedGraph> {
                 CLEAVE_ASSIGN_OR_RETURN(
                     const aot::JointGraph joint,
                     aot::MakeJointGraph(call.graph, options, *call.rules));
                 CLEAVE_ASSIGN_OR_RETURN(aot::Partition partition,
                                         aot::DefaultPartition(joint));
                 DerivedGraph made;
                 made.graph = std::move(partition.forward);
                 made.backward = std::move(partition.backward);
                 made.saved = partition.saved;
                 return made;
               }));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          RunGraph(residuals->derived->graph, call.inputs));
  const size_t count = outputs.size() - residuals->derived->saved;
  residuals->saved.assign(outputs.begin() + count, outputs.end());
  residuals->results = call.results;
  for (size_t i = 0; i < count; ++i) {
    residuals->types.push_back(outputs[i].type());
  }
  ValueAndResiduals result;
  CLEAVE_ASSIGN_OR_RETURN(
      result.value,
      Unflatten(call.results, {outputs.begin(), outputs.begin() + count}));
  result.residuals = std::move(residuals);
  return result;
}

absl::StatusOr<Tree> PullBack(const Residuals& residuals,
                              const Tree& cotangent) {
  CLEAVE_RETURN_IF_ERROR(
      CheckShape(cotangent, residuals.results, "the cotangent"));
  std::vector<Tensor> inputs = residuals.saved;
  for (size_t i = 0; i < residuals.types.size(); ++i) {
    const TensorType& type = residuals.types[i];
    const Tensor& given = cotangent.leaves()[i];
    if (!IsAbsent(given)) {
      CLEAVE_RETURN_IF_ERROR(CheckLinear(given, type, "cotangent", i));
      inputs.push_back(given);
    } else if (InClass(type.dtype, DTypeClass::kInexact)) {
      inputs.push_back(Zeros(type.dtype, type.shape));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          RunGraph(residuals.derived->backward, inputs));
  std::vector<Tensor> leaves;
  size_t next = 0;
  for (const bool is_active : residuals.active) {
    leaves.push_back(is_active ? outputs[next++] : Tensor());
  }
  return Unflatten(residuals.arguments, std::move(leaves));
}

}  // namespace internal_functions
}  // namespace cleave::functional
