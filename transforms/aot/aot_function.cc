#include "transforms/aot/aot_function.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/eager/call.h"
#include "engine/eager/session.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/substitute.h"
#include "ops/status_macros.h"
#include "transforms/aot/aot_graph.h"
#include "transforms/aot/backward_state.h"
#include "transforms/aot/checked_graph.h"
#include "transforms/aot/specialization.h"

namespace cleave::aot {
namespace {

using functional::Flatten;
using functional::ShapeOf;
using functional::Unflatten;

}  // namespace

class AotFunction::Impl {
 public:
  Impl(TreeFunction fn, GraphCompiler fw_compiler, AotOptions options,
       std::shared_ptr<TraceRules> rules)
      : fn_(std::move(fn)),
        fw_compiler_(std::move(fw_compiler)),
        options_(std::move(options)),
        rules_(std::move(rules)),
        cache_(options_.dynamic, options_.max_specializations) {}

  absl::StatusOr<AotResult> Call(const Tree& arguments,
                                 const AotCallOptions& options) {
    const std::vector<functional::Tensor>& leaves = Flatten(arguments);
    const bool traced = functional::InTrace();
    // Held here: what runs may call this function again, for another one.
    if (const std::shared_ptr<const Specialization> last = cache_.last();
        last != nullptr && !traced) {
      GradientRequest gradients;
      gradients.none = options.inference;
      if (options.requires_gradient) {
        gradients.leaves = &*options.requires_gradient;
      }
      Extents extents;
      if (last->ServesAtOnce(arguments, gradients, &extents)) {
        if (last_ != last) last_ = last;
        return CallCompiled(*last, leaves, extents);
      }
    }
    CLEAVE_RETURN_IF_ERROR(Check(arguments, traced));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> requires_gradient,
                            Requires(leaves, options));
    const CallSignature call(arguments, requires_gradient, traced,
                             options_.keep_inference_input_mutations);
    SpecializationCache::Found found = cache_.Find(call);
    if (found.specialization == nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(found.specialization,
                              Make(arguments, call, found.why));
      found.specialization->ReadExtents(
          traced ? absl::Span<const functional::Tensor>() : leaves,
          &found.extents);
    }
    last_ = found.specialization;
    const Specialization& specialization = *found.specialization;
    return traced ? CallTraced(specialization, leaves)
                  : CallCompiled(specialization, leaves, found.extents);
  }

  const AotLog& log() const { return log_; }
  int64_t traces() const { return traces_; }
  int64_t specializations() const { return cache_.size(); }
  const TracedProgram* last_program() const {
    return last_ == nullptr ? nullptr : &last_->program;
  }

  std::string Guards() const {
    std::string out;
    for (const auto& specialization : cache_.InOrder()) {
      if (specialization->traced) continue;
      std::vector<std::string> lines;
      const Graph& graph = specialization->program.graph;
      for (const NamedValue& input : graph.inputs()) {
        lines.push_back(
            absl::StrCat(input.name, ": ", graph.type(input.value).ToString()));
      }
      for (const ShapeGuard& guard : specialization->guards) {
        lines.push_back(PrintGuard(guard));
      }
      absl::StrAppend(&out, absl::StrJoin(lines, "; "), "\n");
    }
    return out;
  }

 private:
  absl::Status Check(const Tree& arguments, bool traced) const {
    const std::vector<functional::Tensor>& leaves = Flatten(arguments);
    CLEAVE_RETURN_IF_ERROR(CheckArguments(ShapeOf(arguments), leaves));
    for (size_t i = 0; i < leaves.size() && !traced; ++i) {
      if (!leaves[i].IsTraced()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("argument ", LeafNames(ShapeOf(arguments), "x")[i],
                       " is a tensor of a trace, and the call is outside of "
                       "it: its value is known in the traced graph only"));
    }
    if (options_.num_params_buffers < 0 ||
        options_.num_params_buffers > static_cast<int>(leaves.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("num_params_buffers is ", options_.num_params_buffers,
                       ", the arguments have ", leaves.size(), " tensors"));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<std::vector<bool>> Requires(
      const std::vector<functional::Tensor>& leaves,
      const AotCallOptions& options) {
    std::vector<bool> requires_gradient(leaves.size());
    if (options.inference) return requires_gradient;
    if (!options.requires_gradient) {
      for (size_t i = 0; i < leaves.size(); ++i) {
        requires_gradient[i] = InClass(leaves[i].dtype(), DTypeClass::kInexact);
      }
      return requires_gradient;
    }
    if (options.requires_gradient->size() != leaves.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "requires_gradient has ", options.requires_gradient->size(),
          " entries, the arguments have ", leaves.size(), " tensors"));
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      if ((*options.requires_gradient)[i] &&
          !InClass(leaves[i].dtype(), DTypeClass::kInexact)) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor ", i, " of the arguments is of dtype ",
                         DTypeName(leaves[i].dtype()), ": it has no gradient"));
      }
    }
    return *options.requires_gradient;
  }

  // The types that a call is traced at: under `dynamic` with symbols for
  // extents, one for each value, but for those that are `fixed`. Their values
  // are put into `hints`.
  std::vector<TensorType> TraceTypes(
      const std::vector<functional::Tensor>& leaves,
      const std::set<int64_t>& fixed,
      std::map<std::string, int64_t>* hints) const {
    std::vector<TensorType> types;
    std::map<int64_t, Dim> symbols;
    for (size_t i = 0; i < leaves.size(); ++i) {
      TensorType type = leaves[i].type();
      const bool is_static = !options_.dynamic ||
                             static_cast<int>(i) < options_.num_params_buffers;
      for (Dim& extent : type.shape) {
        if (is_static || !extent.Value() || *extent.Value() == 1) continue;
        const int64_t value = *extent.Value();
        if (fixed.count(value) > 0) continue;
        auto it = symbols.find(value);
        if (it == symbols.end()) {
          const std::string name = absl::StrCat("s", symbols.size());
          hints->emplace(name, value);
          it = symbols.emplace(value, Dim::Variable(name)).first;
        }
        extent = it->second;
      }
      types.push_back(std::move(type));
    }
    return types;
  }

  // Traces and compiles. Where a function does not hold for all extents, those
  // that it needs to be numbers are: one alone if that is enough. Nothing of an
  // attempt is kept but the one that serves the call.
  absl::StatusOr<std::shared_ptr<const Specialization>> Make(
      const Tree& arguments, const CallSignature& call,
      const std::string& why) {
    std::map<std::string, int64_t> hints;
    if (!call.traced) TraceTypes(call.leaves, {}, &hints);
    std::vector<std::set<int64_t>> attempts = {{}};
    for (const auto& [name, value] : hints) attempts.push_back({value});
    std::set<int64_t> all;
    for (const auto& [name, value] : hints) {
      all.insert(value);
      if (all.size() > 1) attempts.push_back(all);
    }
    absl::Status first;
    for (const std::set<int64_t>& fixed : attempts) {
      const std::string reason =
          fixed.empty()
              ? why
              : absl::StrCat(why, "; with extents ", absl::StrJoin(fixed, ", "),
                             " as numbers, since ", first.message());
      absl::StatusOr<std::shared_ptr<Specialization>> made =
          MakeAt(arguments, call, reason, fixed);
      if (made.ok()) {
        if (IsKept(**made)) cache_.Insert(*made, call);
        return std::shared_ptr<const Specialization>(*std::move(made));
      }
      // All extents of the last attempt are numbers: its mistake is the one to
      // report.
      if (&fixed == &attempts.back()) return made.status();
      if (first.ok()) first = made.status();
    }
    return first;
  }

  // A trace that captures a tensor of a trace around it is of no use after that
  // one.
  static bool IsKept(const Specialization& made) {
    return std::none_of(made.program.inputs.begin(), made.program.inputs.end(),
                        [](const TracedInput& input) {
                          return input.leaf < 0 && input.captured.IsTraced();
                        });
  }

  absl::StatusOr<std::shared_ptr<Specialization>> MakeAt(
      const Tree& arguments, const CallSignature& call, const std::string& why,
      const std::set<int64_t>& fixed) {
    auto result = std::make_shared<Specialization>(call);
    Specialization& made = *result;
    const std::vector<functional::Tensor>& leaves = call.leaves;
    std::map<std::string, int64_t> hint_values;
    if (call.traced) {
      std::vector<TensorType> types;
      for (const functional::Tensor& leaf : leaves) {
        types.push_back(leaf.type());
      }
      made.SetTypes(std::move(types), {});
    } else {
      std::vector<TensorType> types = TraceTypes(leaves, fixed, &hint_values);
      std::vector<std::string> symbols;
      for (const auto& [name, value] : hint_values) symbols.push_back(name);
      made.SetTypes(std::move(types), std::move(symbols));
    }
    const bool differentiated =
        std::find(made.requires_gradient.begin(), made.requires_gradient.end(),
                  true) != made.requires_gradient.end();
    TraceOptions trace_options;
    trace_options.differentiated = differentiated;
    trace_options.refuse_writes = options_.disable_functionalization;
    trace_options.write_in_graph =
        options_.keep_inference_input_mutations && !differentiated;
    AotTrace log;
    log.why = why;
    PhaseClock clock(options_.enable_log ? &log : nullptr);
    {
      SizeHints hints(hint_values);
      CLEAVE_ASSIGN_OR_RETURN(
          made.program,
          TraceProgram(fn_, call.arguments, leaves, made.types,
                       rules_->decompositions.rules, trace_options));
      made.guards = made.program.graph.guards();
      made.guards.insert(made.guards.end(), hints.guards().begin(),
                         hints.guards().end());
    }
    const TracedProgram& program = made.program;
    made.is_mutated = program.IsMutated();
    made.returns_outputs = ReturnsOutputs(program);
    clock.Phase("trace", &program.graph);
    made.active.resize(program.inputs.size());
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!made.requires_gradient[i]) continue;
      const int input = program.leaf_inputs[i];
      if (program.inputs[input].is_base) {
        return absl::InvalidArgumentError(absl::StrCat(
            "argument ", LeafNames(call.arguments, "x")[i],
            " shares its storage with another one, and it is written: ask for "
            "no gradient of it, or give the storage as one tensor"));
      }
      made.active[input] = true;
    }
    if (made.traced) {
      CLEAVE_ASSIGN_OR_RETURN(
          made.program.graph,
          ReplaceOps(program.graph, rules_->decompositions));
      made.backward =
          BackwardTrees::Of(program, made.program.graph, made.active);
      return result;
    }
    CLEAVE_RETURN_IF_ERROR(CheckKnownGuards(made.guards, hint_values));
    for (const TracedOutput& output : program.outputs) {
      for (const functional::ViewStep& step : output.view.steps()) {
        made.has_symbolic_views |= HasDimVariables(step.attributes);
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> examples,
                            Examples(program, leaves));
    AotOptions options = options_;
    options.num_params_buffers = LeadingInputs(program);
    CLEAVE_ASSIGN_OR_RETURN(
        made.compiled,
        AotGraph::Make(program.graph, made.active, examples, fw_compiler_,
                       options, rules_, options_.enable_log ? &log : nullptr));
    const PartitionedFunction& function = made.compiled->function();
    AddGuards(function.partition.forward, &made.guards);
    AddGuards(function.partition.backward, &made.guards);
    made.backward = BackwardTrees::Of(program, function.graph, function.active);
    ++traces_;
    if (options_.enable_log) Keep(std::move(log));
    return result;
  }

  static bool ReturnsOutputs(const TracedProgram& program) {
    const size_t count = program.outputs.size();
    if (program.graph.outputs().size() != count) return false;
    for (size_t i = 0; i < count; ++i) {
      const TracedOutput& output = program.outputs[i];
      if (output.kind != OutputKind::kNonAlias) return false;
      if (output.value != static_cast<int>(i)) return false;
    }
    return true;
  }

  // Adds the guards of `graph` that are not there yet.
  static void AddGuards(const Graph& graph, std::vector<ShapeGuard>* guards) {
    for (const ShapeGuard& guard : graph.guards()) {
      const bool known = std::any_of(
          guards->begin(), guards->end(), [&](const ShapeGuard& other) {
            return other.op == guard.op && other.lhs == guard.lhs &&
                   other.rhs == guard.rhs;
          });
      if (!known) guards->push_back(guard);
    }
  }

  void Keep(AotTrace log) {
    log_.traces.push_back(std::move(log));
    if (static_cast<int64_t>(log_.traces.size()) >
        std::max<int64_t>(options_.max_specializations, 1)) {
      log_.traces.erase(log_.traces.begin());
    }
  }

  // Inputs of the graph that parameters and buffers are.
  int LeadingInputs(const TracedProgram& program) const {
    int inputs = 0;
    while (inputs < static_cast<int>(program.inputs.size()) &&
           program.inputs[inputs].leaf >= 0 &&
           program.inputs[inputs].leaf < options_.num_params_buffers) {
      ++inputs;
    }
    return inputs;
  }

  static absl::StatusOr<std::vector<TensorType>> Examples(
      const TracedProgram& program,
      const std::vector<functional::Tensor>& leaves) {
    std::vector<TensorType> types;
    for (const TracedInput& input : program.inputs) {
      if (input.leaf < 0) {
        types.push_back(input.captured.type());
      } else {
        const functional::Tensor& leaf = leaves[input.leaf];
        types.push_back(input.is_base ? leaf.view().base() : leaf.type());
      }
    }
    return types;
  }

  // The tensor that an input of the graph stands for in a call.
  static functional::Tensor InputOf(
      const TracedInput& input, const std::vector<functional::Tensor>& leaves) {
    if (input.leaf < 0) return input.captured;
    return input.is_base ? leaves[input.leaf].Base() : leaves[input.leaf];
  }

  absl::StatusOr<AotResult> CallCompiled(
      const Specialization& specialization,
      const std::vector<functional::Tensor>& leaves, const Extents& extents) {
    const TracedProgram& program = specialization.program;
    std::vector<cleave::Tensor> inputs;
    inputs.reserve(program.inputs.size());
    for (const TracedInput& input : program.inputs) {
      if (input.leaf < 0 || input.is_base) {
        CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor value,
                                InputOf(input, leaves).Concrete());
        inputs.push_back(std::move(value));
      } else if (const auto* const known = leaves[input.leaf].Known()) {
        inputs.push_back(*known);
      } else {
        CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor value,
                                leaves[input.leaf].Concrete());
        inputs.push_back(std::move(value));
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(AotGraph::Result run,
                            specialization.compiled->Run(std::move(inputs)));
    // The backward compares cotangents with them.
    const bool differentiated =
        specialization.compiled->function().differentiated;
    std::vector<functional::Tensor> outputs;
    outputs.reserve(run.outputs.size());
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      cleave::Tensor& output = run.outputs[i];
      outputs.push_back(specialization.NewTensor(
          i, differentiated ? output : std::move(output)));
    }
    CLEAVE_ASSIGN_OR_RETURN(
        Tree results,
        WriteAndView(specialization, leaves, extents, std::move(outputs)));
    AotBackward backward;
    if (differentiated) {
      backward = AotBackward(BackwardState::OfCompiled(
          specialization.backward, specialization.compiled, std::move(run)));
    }
    return AotResult{std::move(results), std::move(backward)};
  }

  absl::StatusOr<AotResult> CallTraced(
      const Specialization& specialization,
      const std::vector<functional::Tensor>& leaves) {
    const TracedProgram& program = specialization.program;
    std::vector<functional::Tensor> inputs;
    for (const TracedInput& input : program.inputs) {
      // As it is now: writes that come later are not what was differentiated.
      inputs.push_back(InputOf(input, leaves).Clone());
    }
    CLEAVE_ASSIGN_OR_RETURN(std::vector<functional::Tensor> outputs,
                            functional::CallGraph(program.graph, inputs));
    CLEAVE_ASSIGN_OR_RETURN(Tree results, WriteAndView(specialization, leaves,
                                                       {}, std::move(outputs)));
    AotBackward backward;
    if (std::find(specialization.active.begin(), specialization.active.end(),
                  true) != specialization.active.end()) {
      backward = AotBackward(BackwardState::OfTraced(
          specialization.backward, program.graph, rules_, std::move(inputs)));
    }
    return AotResult{std::move(results), std::move(backward)};
  }

  // Writes the inputs that the function writes, and makes its results: tensors
  // of their own, and views.
  absl::StatusOr<Tree> WriteAndView(
      const Specialization& specialization,
      const std::vector<functional::Tensor>& leaves, const Extents& extents,
      std::vector<functional::Tensor> outputs) {
    const TracedProgram& program = specialization.program;
    if (specialization.is_mutated) {
      CLEAVE_RETURN_IF_ERROR(Write(program, leaves, outputs));
    }
    // Views were traced with symbols for extents.
    DimSubstitution dims;
    if (specialization.has_symbolic_views) {
      for (const auto& [name, value] : specialization.ValuesOf(extents)) {
        dims.emplace(name, value);
      }
    }
    if (specialization.returns_outputs) {
      return Unflatten(program.results, std::move(outputs));
    }
    std::vector<functional::Tensor> results;
    results.reserve(program.outputs.size());
    for (const TracedOutput& output : program.outputs) {
      if (output.kind == OutputKind::kNonAlias) {
        results.push_back(outputs[output.value]);
        continue;
      }
      functional::Tensor base;
      if (output.base_captured >= 0) {
        base = program.inputs[output.base_captured].captured;
      } else if (output.base_leaf < 0) {
        base = outputs[output.base_output];
      } else {
        // Its view is one of the storage if that was given, else one of the
        // leaf, which may be a view itself.
        const functional::Tensor& leaf = leaves[output.base_leaf];
        base = program.inputs[program.leaf_inputs[output.base_leaf]].is_base
                   ? leaf.Base()
                   : leaf;
      }
      View view = base.view();
      for (const functional::ViewStep& step : output.view.steps()) {
        CLEAVE_ASSIGN_OR_RETURN(const Attributes attributes,
                                SubstituteDims(step.attributes, dims));
        CLEAVE_ASSIGN_OR_RETURN(view, view.Then(step.primitive, attributes));
      }
      results.push_back(base.WithView(std::move(view)));
    }
    return Unflatten(program.results, std::move(results));
  }

  // Gives the inputs that the function writes their new values. A write is an
  // op: where the host has no session, one of this function's runs it.
  absl::Status Write(const TracedProgram& program,
                     const std::vector<functional::Tensor>& leaves,
                     const std::vector<functional::Tensor>& outputs) {
    std::optional<functional::SessionScope> scope;
    if (!functional::InTrace() && functional::CurrentSession() == nullptr) {
      if (session_ == nullptr) {
        session_ =
            std::make_unique<functional::Session>(rules_->decompositions.rules);
      }
      scope.emplace(*session_);
    }
    for (const TracedInput& input : program.inputs) {
      if (input.updated < 0) continue;
      functional::Tensor target = InputOf(input, leaves);
      CLEAVE_RETURN_IF_ERROR(target.Assign(outputs[input.updated]));
    }
    return absl::OkStatus();
  }

  const TreeFunction fn_;
  const GraphCompiler fw_compiler_;
  const AotOptions options_;
  const std::shared_ptr<TraceRules> rules_;
  SpecializationCache cache_;
  std::shared_ptr<const Specialization> last_;
  std::unique_ptr<functional::Session> session_;  // null until it is needed
  AotLog log_;
  int64_t traces_ = 0;
};

AotFunction::AotFunction(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<AotFunction> AotFunction::MakeOfTrees(
    TreeFunction fn, GraphCompiler fw_compiler,
    std::shared_ptr<const RuleSet> rules, AotOptions options) {
  if (fn == nullptr) return absl::InvalidArgumentError("there is no function");
  if (fw_compiler == nullptr) {
    return absl::InvalidArgumentError("there is no fw_compiler");
  }
  CLEAVE_ASSIGN_OR_RETURN(std::shared_ptr<TraceRules> trace_rules,
                          MakeTraceRules(options, std::move(rules)));
  return AotFunction(
      std::make_shared<Impl>(std::move(fn), std::move(fw_compiler),
                             std::move(options), std::move(trace_rules)));
}

absl::StatusOr<AotResult> AotFunction::Call(
    const Tree& arguments, const AotCallOptions& options) const {
  return impl_->Call(arguments, options);
}

const AotLog& AotFunction::log() const { return impl_->log(); }
int64_t AotFunction::traces() const { return impl_->traces(); }
int64_t AotFunction::specializations() const {
  return impl_->specializations();
}
std::string AotFunction::Guards() const { return impl_->Guards(); }
const TracedProgram* AotFunction::last_program() const {
  return impl_->last_program();
}

absl::StatusOr<GradAndValue> ComputeGradAndValue(
    const AotFunction& fn, const Tree& arguments,
    const AotCallOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const AotResult result, fn.Call(arguments, options));
  const std::vector<functional::Tensor>& outputs = Flatten(result.outputs);
  if (outputs.size() != 1 || outputs[0].rank() != 0 ||
      !InClass(outputs[0].dtype(), DTypeClass::kFloat)) {
    return absl::InvalidArgumentError(
        "a gradient is that of one result, a float scalar");
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Tree cotangents,
      Unflatten(ShapeOf(result.outputs),
                {functional::Ones(outputs[0].dtype(), {})}));
  CLEAVE_ASSIGN_OR_RETURN(AotResult gradients, result.backward(cotangents));
  return GradAndValue{std::move(gradients.outputs), outputs[0]};
}

}  // namespace cleave::aot
