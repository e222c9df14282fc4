#include "testing/conformance/compute_section.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/status_macros.h"
#include "testing/conformance/case_rounding.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// A graph with the tensors for its inputs.
struct Program {
  Graph graph;
  std::vector<Tensor> tensors;
};

// The rules and the evaluator that compute the sections.
struct Engine {
  const RuleSet& rules;
  const GraphEvaluator& evaluate;
};

absl::StatusOr<std::vector<Tensor>> Evaluate(const Program& program,
                                             const Engine& engine) {
  // As programs are run.
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives,
                          InPrimitives(program.graph, engine.rules));
  return engine.evaluate(primitives, program.tensors);
}

struct Differentiated {
  Program program;
  // For each output of the primal its tangent's place among the outputs; -1
  // where it has none.
  std::vector<int> tangents;
};

// The jvp of `program` along `tangents`, one entry per input or fewer.
absl::StatusOr<Differentiated> Differentiate(
    const Program& program, const std::vector<std::optional<Tensor>>& tangents,
    const Engine& engine) {
  std::vector<bool> active(program.tensors.size());
  Differentiated result;
  result.program.tensors = program.tensors;
  for (size_t i = 0; i < tangents.size(); ++i) {
    active[i] = tangents[i].has_value();
    if (active[i]) result.program.tensors.push_back(*tangents[i]);
  }
  CLEAVE_ASSIGN_OR_RETURN(JvpResult jvp,
                          Jvp(program.graph, active, engine.rules));
  int next = static_cast<int>(program.graph.outputs().size());
  for (bool has : jvp.has_tangent) result.tangents.push_back(has ? next++ : -1);
  result.program.graph = std::move(jvp.graph);
  return result;
}

absl::StatusOr<Computed> EvaluateTangents(const Differentiated& derivative,
                                          int first, int count,
                                          const Engine& engine) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                          Evaluate(derivative.program, engine));
  Computed computed;
  for (int i = first; i < first + count; ++i) {
    const int at = derivative.tangents[i];
    computed.push_back(at < 0 ? std::nullopt : std::make_optional(outputs[at]));
  }
  return computed;
}

// The in_axes of a program's inputs, and its batch; tensors are replaced by the
// batched ones.
absl::StatusOr<Computed> EvaluateBatched(const Program& program,
                                         const std::vector<int>& in_axes,
                                         int first_output,
                                         const Engine& engine) {
  int64_t batch = -1;
  for (size_t i = 0; i < in_axes.size(); ++i) {
    if (in_axes[i] == kNotMapped) continue;
    if (in_axes[i] < 0 || in_axes[i] >= program.tensors[i].rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("in_axes: input ", i, " has no axis ", in_axes[i]));
    }
    batch = program.tensors[i].shape()[in_axes[i]];
  }
  CLEAVE_ASSIGN_OR_RETURN(
      Graph batched,
      Vmap(program.graph, in_axes, Dim(batch),
           std::vector<int>(program.graph.outputs().size(), 0), engine.rules));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Tensor> outputs,
      Evaluate({std::move(batched), program.tensors}, engine));
  return Computed(outputs.begin() + first_output, outputs.end());
}

std::vector<int> InAxes(const CaseCall& call, const CaseSection& section) {
  std::vector<int> in_axes;
  for (const std::string& argument : call.arguments) {
    const auto it = section.in_axes.find(argument);
    in_axes.push_back(it != section.in_axes.end() && it->second ? *it->second
                                                                : kNotMapped);
  }
  return in_axes;
}

void ReplaceTensors(const CaseCall& call, const CaseArguments& replacements,
                    std::vector<Tensor>& tensors) {
  const auto replaced = TensorsFor(call, replacements);
  for (size_t i = 0; i < replaced.size(); ++i) {
    if (replaced[i]) tensors[i] = *replaced[i];
  }
}

// Vmap of the jvp: the outputs are the tangents.
absl::StatusOr<Computed> ComputeVmapJvp(const CaseCall& call,
                                        const CaseSection& section,
                                        const Engine& engine) {
  const auto tangents = TensorsFor(call, section.tangents.at(0));
  CLEAVE_ASSIGN_OR_RETURN(
      Differentiated derivative,
      Differentiate({call.graph, call.tensors}, tangents, engine));
  std::vector<int> in_axes = InAxes(call, section);
  ReplaceTensors(call, section.arguments, derivative.program.tensors);
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (tangents[i]) in_axes.push_back(in_axes[i]);
  }
  const int outputs = static_cast<int>(call.graph.outputs().size());
  CLEAVE_ASSIGN_OR_RETURN(
      const Computed tangents_out,
      EvaluateBatched(derivative.program, in_axes, outputs, engine));
  Computed computed;
  for (int at : derivative.tangents) {
    computed.push_back(at < 0 ? std::nullopt : tangents_out[at - outputs]);
  }
  return computed;
}

// One entry per output of the call's graph.
absl::StatusOr<Computed> ComputeOutputs(const CaseCall& call,
                                        const CaseSection& section,
                                        const Engine& engine) {
  const Program program = {call.graph, call.tensors};
  const int outputs = static_cast<int>(call.graph.outputs().size());
  if (section.name == "outputs") {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                            Evaluate(program, engine));
    return Computed(values.begin(), values.end());
  }
  if (section.name == "vmap") {
    Program batched = program;
    ReplaceTensors(call, section.arguments, batched.tensors);
    return EvaluateBatched(batched, InAxes(call, section), 0, engine);
  }
  if (section.name == "vmap_jvp") return ComputeVmapJvp(call, section, engine);
  if (section.name == "jvp" || section.name == "jvp_jvp") {
    CLEAVE_ASSIGN_OR_RETURN(
        Differentiated first,
        Differentiate(program, TensorsFor(call, section.tangents.at(0)),
                      engine));
    if (section.name == "jvp") {
      return EvaluateTangents(first, 0, outputs, engine);
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const Differentiated second,
        Differentiate(first.program, TensorsFor(call, section.tangents.at(1)),
                      engine));
    CLEAVE_ASSIGN_OR_RETURN(
        const Computed all,
        EvaluateTangents(second, 0,
                         static_cast<int>(first.program.graph.outputs().size()),
                         engine));
    Computed computed;
    for (int at : first.tangents) {
      computed.push_back(at < 0 ? std::nullopt : all[at]);
    }
    return computed;
  }
  return absl::InternalError(
      absl::StrCat("there is no section `", section.name, "`"));
}

// The vjp of `program` in the inputs that have an expected gradient: cotangents
// by declared result, zeros where the section has none.
absl::StatusOr<Program> Pull(const CaseCall& call, const CaseSection& section,
                             const std::vector<bool>& active,
                             const Engine& engine) {
  CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp, Vjp(call.graph, active, engine.rules));
  Program program = {std::move(vjp.graph), call.tensors};
  for (size_t o = 0; o < call.graph.outputs().size(); ++o) {
    const DType dtype = call.graph.type(call.graph.outputs()[o].value).dtype;
    if (!IsFloat(dtype) && !IsComplex(dtype)) continue;
    const Tensor* given = nullptr;
    for (size_t r = 0; r < call.results.size(); ++r) {
      if (call.results[r] == static_cast<int>(o) &&
          r < section.cotangents.size() && section.cotangents[r]) {
        given = &section.cotangents[r]->tensor;
      }
    }
    if (given == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the section has no cotangent of output ", o));
    }
    // A result may have a dtype of its own, whatever the inputs are cast to.
    program.tensors.push_back(IsFloat(dtype) && given->dtype() != dtype
                                  ? RoundTensor(*given, given->dtype(), dtype)
                                  : *given);
  }
  return program;
}

// One entry per input of the call.
absl::StatusOr<Computed> ComputeGradients(const CaseCall& call,
                                          const CaseSection& section,
                                          const Engine& engine) {
  std::vector<bool> active;
  for (const auto& gradient : RefsFor(call, section.grads)) {
    active.push_back(gradient.has_value());
  }
  CLEAVE_ASSIGN_OR_RETURN(Program program, Pull(call, section, active, engine));
  Computed values;
  const int outputs = static_cast<int>(call.graph.outputs().size());
  if (section.name == "vjp") {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> all,
                            Evaluate(program, engine));
    values.assign(all.begin() + outputs, all.end());
  } else {
    CLEAVE_ASSIGN_OR_RETURN(
        const Differentiated second,
        Differentiate(program, TensorsFor(call, section.tangents.at(0)),
                      engine));
    CLEAVE_ASSIGN_OR_RETURN(
        values, EvaluateTangents(
                    second, outputs,
                    static_cast<int>(program.graph.outputs().size()) - outputs,
                    engine));
  }
  Computed computed;
  size_t next = 0;
  for (bool is_active : active) {
    computed.push_back(is_active ? values[next++] : std::nullopt);
  }
  return computed;
}

bool IsReverse(const CaseSection& section) {
  return section.name == "vjp" || section.name == "jvp_vjp";
}

}  // namespace

absl::StatusOr<Computed> ComputeSection(const CaseCall& call,
                                        const CaseSection& section,
                                        const RuleSet& rules,
                                        const GraphEvaluator& evaluate) {
  const Engine engine = {rules, evaluate};
  if (IsReverse(section)) return ComputeGradients(call, section, engine);
  CLEAVE_ASSIGN_OR_RETURN(const Computed outputs,
                          ComputeOutputs(call, section, engine));
  Computed results;
  for (int at : call.results) {
    results.push_back(at < 0 ? std::nullopt : outputs.at(at));
  }
  return results;
}

ExpectedOutputs ExpectedOf(const CaseCall& call, const CaseSection& section) {
  return IsReverse(section) ? RefsFor(call, section.grads) : section.outputs;
}

}  // namespace cleave
