#include "transforms/partition/partition_testing.h"

#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "transforms/partition/determined_dims.h"
#include "transforms/testing/test_rules.h"

namespace cleave::aot {
namespace {

constexpr uint64_t kSeed = 7;
constexpr char kFunctions[] = "transforms/partition/testdata/functions.rules";

Tensor Draw(DType dtype, std::vector<int64_t> shape, std::mt19937_64& random) {
  Tensor tensor(dtype, std::move(shape));
  std::uniform_real_distribution<double> real(-2, 2);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    switch (KindOf(dtype)) {
      case DTypeKind::kBool:
        tensor.SetInt(i, static_cast<int64_t>(random() & 1));
        break;
      case DTypeKind::kInt:
        tensor.SetInt(i, static_cast<int64_t>(random() % 6));
        break;
      case DTypeKind::kFloat:
        tensor.SetDouble(i, real(random));
        break;
      case DTypeKind::kComplex:
        tensor.SetComplex(i, {real(random), real(random)});
        break;
      case DTypeKind::kKey:
        tensor.SetInt(i, static_cast<int64_t>(random() >> 1));
        break;
    }
  }
  return tensor;
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph,
                                             const std::vector<Tensor>& inputs,
                                             const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives, Expand(graph, rules));
  return Interpret(primitives, inputs);
}

// The extents that only a run of the function tells, those of its outputs, in
// addition to `dims`.
absl::StatusOr<DimValues> WithOutputExtents(const JointGraph& joint,
                                            const Partition& partition,
                                            const DimValues& dims,
                                            const RuleSet& rules) {
  const int inputs = static_cast<int>(joint.graph.inputs().size());
  if (DimsOfInputs(joint.graph, inputs).size() == dims.size()) return dims;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> primals,
                          DrawInputs(partition.forward, dims, kSeed));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          Evaluate(partition.forward, primals, rules));
  DimValues all = dims;
  std::vector<DimEquation> equations;
  for (int i = 0; i < joint.outputs; ++i) {
    const NamedValue& output = joint.graph.outputs()[i];
    const TensorType& type = joint.graph.type(output.value);
    for (int axis = 0; axis < type.rank(); ++axis) {
      equations.push_back(
          {type.shape[axis], outputs[i].shape()[axis], output.name});
    }
  }
  CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(equations), &all));
  return all;
}

// `may_fail`: whether the function may fail there.
absl::Status CompareAt(const JointGraph& joint, const Partition& partition,
                       const DimValues& extents, const RuleSet& rules,
                       bool may_fail) {
  CLEAVE_ASSIGN_OR_RETURN(const DimValues dims,
                          WithOutputExtents(joint, partition, extents, rules));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                          DrawInputs(joint.graph, dims, kSeed));
  const absl::StatusOr<std::vector<Tensor>> wanted =
      Evaluate(joint.graph, inputs, rules);
  const absl::StatusOr<std::vector<Tensor>> got =
      RunHalves(joint, partition, inputs, rules);
  if (wanted.status().code() != got.status().code()) {
    return absl::InternalError(
        absl::StrCat("the halves give ", got.status().ToString(),
                     ", the joint graph ", wanted.status().ToString()));
  }
  if (!wanted.ok()) return may_fail ? absl::OkStatus() : wanted.status();
  for (size_t i = 0; i < wanted->size(); ++i) {
    if (SameValue((*got)[i], (*wanted)[i])) continue;
    return absl::InternalError(
        absl::StrCat("output ", joint.graph.outputs()[i].name, " is ",
                     (*got)[i].ToString(), ", not ", (*wanted)[i].ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<const RuleSet> LoadFunctions(
    const std::shared_ptr<Context>& context) {
  return LoadTestRules(context, ReadText(kFunctions), {"core"});
}

std::vector<std::string> FunctionNames(const RuleSet& rules) {
  return rules.Names(ItemKind::kFn);
}

absl::StatusOr<JointGraph> JointOf(const std::string& function,
                                   const RuleSet& rules,
                                   int num_params_buffers) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph, rules.Function(function));
  JointGraphOptions options;
  options.num_params_buffers = num_params_buffers;
  for (const NamedValue& input : graph.inputs()) {
    const DType dtype = graph.type(input.value).dtype;
    options.active.push_back(IsFloat(dtype) || IsComplex(dtype));
  }
  return MakeJointGraph(graph, options, rules);
}

absl::StatusOr<std::vector<Tensor>> DrawInputs(const Graph& graph,
                                               const DimValues& dims,
                                               uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> inputs;
  for (const NamedValue& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    CLEAVE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                            EvaluateShape(type.shape, dims));
    inputs.push_back(Draw(type.dtype, std::move(shape), random));
  }
  return inputs;
}

absl::StatusOr<std::vector<Tensor>> RunHalves(const JointGraph& joint,
                                              const Partition& partition,
                                              const std::vector<Tensor>& inputs,
                                              const RuleSet& rules) {
  const std::vector<Tensor> primals(inputs.begin(),
                                    inputs.begin() + joint.primals);
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                          Evaluate(partition.forward, primals, rules));
  std::vector<Tensor> saved(outputs.begin() + joint.outputs, outputs.end());
  outputs.resize(joint.outputs);
  saved.insert(saved.end(), inputs.begin() + joint.primals, inputs.end());
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> cotangents,
                          Evaluate(partition.backward, saved, rules));
  for (Tensor& cotangent : cotangents) outputs.push_back(std::move(cotangent));
  return outputs;
}

absl::Status CompareWithJoint(const JointGraph& joint,
                              const Partition& partition,
                              const RuleSet& rules) {
  CLEAVE_RETURN_IF_ERROR(CheckPartition(joint, partition));
  CLEAVE_RETURN_IF_ERROR(Verify(partition.forward));
  CLEAVE_RETURN_IF_ERROR(Verify(partition.backward));
  DimVariables used(joint.graph);
  for (int i = 0; i < joint.primals; ++i) {
    used.AddNode(joint.graph.inputs()[i].value);
  }
  // All of them 3, 1 and 0, then one after the other 0, 1 and 2 among others.
  std::vector<DimValues> points;
  for (int64_t extent : {3, 1, 0}) {
    DimValues dims;
    for (const std::string& name : used.names()) dims[name] = extent;
    points.push_back(dims);
  }
  for (const std::string& name : used.names()) {
    for (int64_t extent : {0, 1, 2}) {
      points.push_back(points[0]);
      points.back()[name] = extent;
    }
  }
  for (const DimValues& dims : points) {
    const absl::Status status = CompareAt(joint, partition, dims, rules,
                                          /*may_fail=*/&dims != &points[0]);
    if (status.ok()) continue;
    std::string at;
    for (const auto& [name, extent] : dims) {
      absl::StrAppend(&at, name, " = ", extent, ", ");
    }
    return absl::Status(status.code(), absl::StrCat(at, status.message()));
  }
  return absl::OkStatus();
}

}  // namespace cleave::aot
