// The walk of the interpreter over a graph, for each kind of tensor that a
// `Values` of engine/ir/interpreter_values.h has. Internal to engine/ir.

#ifndef CLEAVE_ENGINE_IR_INTERPRETER_RUNNER_H_
#define CLEAVE_ENGINE_IR_INTERPRETER_RUNNER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"
#include "engine/ir/loop_operands.h"
#include "engine/ir/region_function.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave::internal_interpreter {

// Matches the types of the inputs against the tensors.
template <typename Values>
absl::Status Bind(const Graph& graph,
                  absl::Span<const typename Values::TensorT> inputs,
                  DimValues* values) {
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " tensors are given for ",
                     graph.inputs().size(), " inputs"));
  }
  std::vector<DimEquation> equations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const TensorType& type = graph.type(input.value);
    const std::vector<int64_t>& shape = Values::ShapeOf(inputs[i]);
    if (Values::DTypeOf(inputs[i]) != type.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input `", input.name, "` is of dtype ",
                       DTypeName(Values::DTypeOf(inputs[i])),
                       ", but is declared ", type.ToString()));
    }
    if (shape.size() != type.shape.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input `", input.name, "` has ", shape.size(),
                       " axes, but is declared ", type.ToString()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back(
          {type.shape[d], shape[d],
           absl::StrCat("axis ", d, " of the input `", input.name, "`")});
    }
  }
  return BindEquations(std::move(equations), values);
}

// Runs one graph, any number of times: what does not depend on the tensors is
// found once.
template <typename Values>
class Runner {
 public:
  using TensorT = typename Values::TensorT;

  Runner(const Graph& graph, const Values& values)
      : graph_(graph), values_(values) {}

  // Needs the dimension variables that hold for every run.
  absl::Status Prepare(const DimValues& dims) {
    if constexpr (Values::kHasHostKernels) {
      function_ = values_.FunctionOf(graph_);
      if (function_ != nullptr) return absl::OkStatus();
    }
    const size_t size = static_cast<size_t>(graph_.size());
    last_use_.assign(size, 0);
    attributes_.resize(size);
    regions_.resize(size);
    for (uint32_t id = 0; id < size; ++id) {
      const Value v{id};
      last_use_[id] = id;  // without users it is freed at once
      for (Value operand : graph_.operands(v)) last_use_[operand.id] = id;
      const OpId op = graph_.node(v).op;
      if (!IsPrimitive(op) && !HasHostKernel(op)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "`", graph_.context()->op_name(op),
            "` is no primitive: a graph is expanded before it is run, but for "
            "what has a host kernel"));
      }
      const Attributes& attributes = graph_.attributes(v);
      if (HasDimVariables(attributes)) {
        auto evaluated = EvaluateDims(attributes, dims);
        if (!evaluated.ok()) return InNode(v, evaluated.status());
        attributes_[id] = *std::move(evaluated);
      }
      CLEAVE_RETURN_IF_ERROR(PrepareRegions(v, dims));
    }
    for (const NamedValue& output : graph_.outputs()) {
      last_use_[output.value.id] = kNever;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TensorT>> Run(std::vector<TensorT> inputs,
                                           DimValues dims) {
    dims_ = std::move(dims);
    open_guards_.clear();
    for (const ShapeGuard& guard : graph_.guards()) {
      open_guards_.push_back(&guard);
    }
    CLEAVE_RETURN_IF_ERROR(CheckGuards());
    results_.clear();
    results_.resize(graph_.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      results_[graph_.inputs()[i].value.id].push_back(std::move(inputs[i]));
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(RunNode(Value{id}));
    }
    std::vector<TensorT> outputs;
    outputs.reserve(graph_.outputs().size());
    const std::vector<NamedValue>& named = graph_.outputs();
    for (auto it = named.begin(); it != named.end(); ++it) {
      TensorT& result = results_[it->value.id].front();
      const bool again = std::any_of(
          it + 1, named.end(),
          [&](const NamedValue& later) { return later.value == it->value; });
      outputs.push_back(again ? result : std::move(result));
    }
    results_.clear();
    return outputs;
  }

 private:
  // Runs a region's graph again, on other inputs.
  absl::StatusOr<std::vector<TensorT>> RunAgain(std::vector<TensorT> inputs,
                                                const DimValues& dims) {
    if constexpr (Values::kHasHostKernels) {
      if (function_ != nullptr) return (*function_)(inputs);
    }
    return Deeper([&] { return Run(std::move(inputs), dims); });
  }

  static constexpr uint32_t kNever = UINT32_MAX;

  bool HasHostKernel(OpId op) const {
    if constexpr (Values::kHasHostKernels) {
      return values_.host_kernels != nullptr &&
             values_.host_kernels->Has(graph_.context()->op_name(op));
    }
    return false;
  }

  // The bodies of a scan (one), a cond (then, else) or a while (cond, body).
  struct Regions {
    std::vector<std::unique_ptr<Runner>> runners;
  };

  absl::Status InNode(Value v, const absl::Status& status) const {
    const Node& node = graph_.node(v);
    const Provenance& p = graph_.context()->provenance(node.provenance);
    std::string place = absl::StrCat("node ", v.id);
    if (node.provenance != 0) {
      absl::StrAppend(&place, " (", p.rule, ", ", p.file, ":", p.line, ")");
    }
    return absl::Status(status.code(),
                        absl::StrCat(place, ": ", status.message()));
  }

  absl::Status PrepareRegions(Value v, const DimValues& dims) {
    const OpId op = graph_.node(v).op;
    std::vector<absl::string_view> names;
    if (op == ToOpId(Primitive::kScan)) names = {"body"};
    if (op == ToOpId(Primitive::kCond)) names = {"then", "else"};
    if (op == ToOpId(Primitive::kWhile)) names = {"cond", "body"};
    for (absl::string_view name : names) {
      const Region& region = graph_.attributes(v).Get(name).AsRegion();
      auto runner = std::make_unique<Runner>(*region.graph, values_);
      CLEAVE_RETURN_IF_ERROR(Deeper([&] { return runner->Prepare(dims); }));
      regions_[v.id].runners.push_back(std::move(runner));
    }
    return absl::OkStatus();
  }

  // Checks those whose variables are all known.
  absl::Status CheckGuards() {
    std::vector<const ShapeGuard*> open;
    for (const ShapeGuard* guard : open_guards_) {
      if (!Known(guard->lhs) || !Known(guard->rhs)) {
        open.push_back(guard);
        continue;
      }
      CLEAVE_RETURN_IF_ERROR(CheckGuard(*guard, dims_));
    }
    open_guards_ = std::move(open);
    return absl::OkStatus();
  }

  bool Known(const Dim& dim) const {
    for (const std::string& name : dim.Variables()) {
      if (dims_.count(name) == 0) return false;
    }
    return true;
  }

  absl::Status RunNode(Value v) {
    const OpId op = graph_.node(v).op;
    if (!IsPrimitive(op)) {
      TakeOperands(v, &operands_);
      absl::StatusOr<std::vector<TensorT>> results = RunHost(v, operands_);
      if (!results.ok()) return InNode(v, results.status());
      ReturnOperands(v, &operands_);
      results_[v.id] = *std::move(results);
      FreeAfter(v);
      return absl::OkStatus();
    }
    const Primitive primitive = ToPrimitive(op);
    if (primitive == Primitive::kInput) {
      if (last_use_[v.id] == v.id) results_[v.id].clear();
      return absl::OkStatus();
    }
    if (primitive == Primitive::kResult) {
      const Value tuple = graph_.operands(v)[0];
      const int64_t index = graph_.attributes(v).GetInt("index");
      TensorT& result = results_[tuple.id][index];
      results_[v.id].push_back(last_use_[tuple.id] == v.id ? std::move(result)
                                                           : result);
    } else {
      TakeOperands(v, &operands_);
      absl::StatusOr<std::vector<TensorT>> results =
          Eval(v, primitive, operands_);
      if (!results.ok()) return InNode(v, results.status());
      ReturnOperands(v, &operands_);
      results_[v.id] = *std::move(results);
      CLEAVE_RETURN_IF_ERROR(CheckResults(v, primitive));
    }
    FreeAfter(v);
    return absl::OkStatus();
  }

  // Frees what no node behind v needs.
  void FreeAfter(Value v) {
    for (Value operand : graph_.operands(v)) {
      if (last_use_[operand.id] == v.id) results_[operand.id].clear();
    }
    if (last_use_[v.id] == v.id) results_[v.id].clear();
  }

  // Kernels take adjacent operands: they are moved there, and moved back to
  // where they are still needed. An operand that occurs twice is copied.
  void TakeOperands(Value v, std::vector<TensorT>* taken) {
    const absl::Span<const Value> operands = graph_.operands(v);
    taken->clear();
    taken->reserve(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto first =
          std::find(operands.begin(), operands.end(), operands[i]);
      const size_t place = first - operands.begin();
      if (place < i) {
        taken->push_back((*taken)[place]);
      } else {
        taken->push_back(std::move(results_[operands[i].id].front()));
      }
    }
  }

  void ReturnOperands(Value v, std::vector<TensorT>* taken) {
    const absl::Span<const Value> operands = graph_.operands(v);
    for (size_t i = operands.size(); i-- > 0;) {
      if (last_use_[operands[i].id] == v.id) continue;
      results_[operands[i].id].front() = std::move((*taken)[i]);
    }
    taken->clear();
  }

  // The attributes of a node, with numbers for dims. If that makes new ones,
  // they lie in `evaluated`.
  absl::StatusOr<const Attributes*> AttributesOf(Value v,
                                                 Attributes* evaluated) const {
    if (!attributes_[v.id].has_value()) return &graph_.attributes(v);
    const Attributes& attributes = *attributes_[v.id];
    if (!HasDimVariables(attributes)) return &attributes;
    // Sizes of nonzeros before it.
    CLEAVE_ASSIGN_OR_RETURN(*evaluated, EvaluateDims(attributes, dims_));
    return evaluated;
  }

  // A call of a composite op that the host computes.
  absl::StatusOr<std::vector<TensorT>> RunHost(
      Value v, const std::vector<TensorT>& operands) {
    if constexpr (Values::kHasHostKernels) {
      Attributes evaluated;
      CLEAVE_ASSIGN_OR_RETURN(const Attributes* attributes,
                              AttributesOf(v, &evaluated));
      const std::shared_ptr<Context> context = graph_.context();
      CLEAVE_ASSIGN_OR_RETURN(
          std::vector<TensorT> results,
          values_.host_kernels->Run({context->op_name(graph_.node(v).op),
                                     operands, *attributes, graph_.types(v)},
                                    dims_));
      CLEAVE_RETURN_IF_ERROR(CheckGuards());  // of sizes that it has decided
      return results;
    }
    CLEAVE_CHECK(false) << "Prepare has refused it";
  }

  absl::StatusOr<std::vector<TensorT>> Eval(
      Value v, Primitive primitive, const std::vector<TensorT>& operands) {
    Attributes evaluated;
    CLEAVE_ASSIGN_OR_RETURN(const Attributes* attributes,
                            AttributesOf(v, &evaluated));
    if (primitive == Primitive::kScan) return Scan(v, *attributes, operands);
    if (primitive == Primitive::kWhile) return While(v, *attributes, operands);
    if (primitive == Primitive::kCond) {
      Runner& region =
          *regions_[v.id].runners[Values::AsBool(operands[0]) ? 0 : 1];
      return region.RunAgain({operands.begin() + 1, operands.end()}, dims_);
    }
    return values_.Eval(primitive, *attributes, operands,
                        AreDeclared(v, operands)
                            ? absl::MakeConstSpan(graph_.types(v))
                            : absl::Span<const TensorType>());
  }

  // Whether the operands have the types, with constant extents, for which the
  // graph says what the results are.
  bool AreDeclared(Value v, const std::vector<TensorT>& operands) const {
    const absl::Span<const Value> sources = graph_.operands(v);
    for (size_t i = 0; i < operands.size(); ++i) {
      const TensorType& type = graph_.type(sources[i]);
      const std::vector<int64_t>& shape = Values::ShapeOf(operands[i]);
      if (type.dtype != Values::DTypeOf(operands[i]) ||
          type.shape.size() != shape.size()) {
        return false;
      }
      for (size_t d = 0; d < shape.size(); ++d) {
        if (type.shape[d].Value() != shape[d]) return false;
      }
    }
    // A nonzero has as many rows as it finds.
    return std::all_of(graph_.types(v).begin(), graph_.types(v).end(),
                       [](const TensorType& type) {
                         return std::all_of(
                             type.shape.begin(), type.shape.end(),
                             [](const Dim& dim) { return dim.IsConstant(); });
                       });
  }

  absl::StatusOr<std::vector<TensorT>> Scan(
      Value v, const Attributes& attributes,
      const std::vector<TensorT>& operands) {
    const int64_t length = attributes.GetInt("length");
    const LoopOperands loop = LoopOperands::Of(attributes, operands.size());
    const bool reverse = attributes.GetBool("reverse");
    const std::vector<TensorType>& types = graph_.types(v);
    Runner& body = *regions_[v.id].runners[0];

    // Carries, then stacks.
    std::vector<TensorT> results(operands.begin() + loop.consts,
                                 operands.begin() + loop.first_slice());
    for (size_t i = loop.carries; i < types.size(); ++i) {
      CLEAVE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                              EvaluateShape(types[i].shape, dims_));
      CLEAVE_ASSIGN_OR_RETURN(TensorT stack,
                              values_.Stack(types[i].dtype, std::move(shape)));
      results.push_back(std::move(stack));
    }
    for (int64_t step = 0; step < length; ++step) {
      CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kLoopSteps));
      const int64_t index = reverse ? length - 1 - step : step;
      std::vector<TensorT> arguments(operands.begin(),
                                     operands.begin() + loop.consts);
      arguments.reserve(operands.size());
      for (int i = 0; i < loop.carries; ++i) {
        arguments.push_back(std::move(results[i]));
      }
      for (int i = loop.first_slice(); i < loop.count(); ++i) {
        arguments.push_back(values_.Slice(operands[i], index));
      }
      CLEAVE_ASSIGN_OR_RETURN(std::vector<TensorT> outputs,
                              body.RunAgain(std::move(arguments), dims_));
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (static_cast<int>(i) < loop.carries) {
          results[i] = std::move(outputs[i]);
        } else {
          values_.SetSlice(std::move(outputs[i]), index, &results[i]);
        }
      }
    }
    return results;
  }

  absl::StatusOr<std::vector<TensorT>> While(
      Value v, const Attributes& attributes,
      const std::vector<TensorT>& operands) {
    const int consts = LoopOperands::Of(attributes, operands.size()).consts;
    std::optional<int64_t> max;
    if (attributes.Find("max") != nullptr) max = attributes.GetInt("max");
    Runner& condition = *regions_[v.id].runners[0];
    Runner& body = *regions_[v.id].runners[1];
    std::vector<TensorT> state = operands;  // consts, then carries
    for (int64_t step = 0;; ++step) {
      CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kLoopSteps));
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorT> goes_on,
                              condition.RunAgain(state, dims_));
      if (!Values::AsBool(goes_on[0])) break;
      if (max.has_value() && step >= *max) {
        return absl::OutOfRangeError(
            absl::StrCat("`while`: the condition still holds after ", *max,
                         *max == 1 ? " step" : " steps", ", its `max`"));
      }
      std::vector<TensorT> arguments(state.begin(), state.begin() + consts);
      arguments.reserve(state.size());
      for (size_t i = consts; i < state.size(); ++i) {
        arguments.push_back(std::move(state[i]));
      }
      CLEAVE_ASSIGN_OR_RETURN(std::vector<TensorT> next,
                              body.RunAgain(std::move(arguments), dims_));
      std::move(next.begin(), next.end(), state.begin() + consts);
    }
    state.erase(state.begin(), state.begin() + consts);
    return state;
  }

  // Whether these are the extents of the shape, by the variables bound so far.
  absl::StatusOr<bool> HasShape(const std::vector<int64_t>& extents,
                                const Shape& shape) const {
    if (extents.size() != shape.size()) return false;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::optional<int64_t> extent = shape[d].Value();
      if (!extent.has_value()) {
        CLEAVE_ASSIGN_OR_RETURN(extent, shape[d].Evaluate(dims_));
      }
      if (extents[d] != *extent) return false;
    }
    return true;
  }

  // Binds the size of a nonzero, and compares the results with the node's
  // types: a kernel relies on what its operands' types say.
  absl::Status CheckResults(Value v, Primitive primitive) {
    const std::vector<TensorType>& types = graph_.types(v);
    const std::vector<TensorT>& results = results_[v.id];
    if (results.size() != types.size()) {
      return InNode(
          v, absl::InternalError(absl::StrCat("it gave ", results.size(),
                                              " results, not ", types.size())));
    }
    if (primitive == Primitive::kNonzero) {
      const Dim& size = graph_.attributes(v).Get("size").AsDim();
      const absl::Status status = BindEquations(
          {{size, Values::ShapeOf(results[0])[0], "the size of `nonzero`"}},
          &dims_);
      if (!status.ok()) return InNode(v, status);
      CLEAVE_RETURN_IF_ERROR(CheckGuards());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const absl::StatusOr<bool> same =
          HasShape(Values::ShapeOf(results[i]), types[i].shape);
      if (!same.ok()) return InNode(v, same.status());
      if (Values::DTypeOf(results[i]) != types[i].dtype || !*same) {
        return InNode(
            v, absl::InternalError(absl::StrCat(
                   "`", PrimitiveName(primitive), "` gave ",
                   DTypeName(Values::DTypeOf(results[i])),
                   " of another shape or dtype than ", types[i].ToString())));
      }
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Values values_;
  const RegionFunction* function_ = nullptr;  // that runs instead
  std::vector<uint32_t> last_use_;
  // With the dims that were known; nullopt where there were no variables.
  std::vector<std::optional<Attributes>> attributes_;
  std::vector<Regions> regions_;

  // The state of the run in progress.
  DimValues dims_;
  std::vector<const ShapeGuard*> open_guards_;
  std::vector<std::vector<TensorT>> results_;
  std::vector<TensorT> operands_;  // of the node that runs
};

template <typename Values>
absl::StatusOr<std::vector<typename Values::TensorT>> RunGraph(
    const Graph& graph, absl::Span<const typename Values::TensorT> inputs,
    const Values& values, DimValues dims) {
  // Each evaluation counts its steps from zero.
  const BudgetScope scope(CurrentLimits(), BudgetScope::Mode::kRenew);
  CLEAVE_RETURN_IF_ERROR(Bind<Values>(graph, inputs, &dims));
  Runner<Values> runner(graph, values);
  CLEAVE_RETURN_IF_ERROR(runner.Prepare(dims));
  return runner.Run({inputs.begin(), inputs.end()}, std::move(dims));
}

}  // namespace cleave::internal_interpreter

#endif  // CLEAVE_ENGINE_IR_INTERPRETER_RUNNER_H_
