#include "transforms/aot/aot_function.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/eager/call.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/substitute.h"
#include "ops/status_macros.h"
#include "transforms/aot/aot_graph.h"
#include "transforms/aot/backward_state.h"

namespace cleave::aot {
namespace {

using functional::Flatten;
using functional::ShapeOf;
using functional::Unflatten;

// Which leaves share storages, and through what views where it matters, as
// text: where a whole storage may become an input.
std::string AliasPattern(const std::vector<functional::Tensor>& leaves,
                         bool write_in_graph) {
  const std::vector<int> first = FirstOfStorage(leaves);
  std::string pattern;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool shared = std::count(first.begin(), first.end(), first[i]) > 1;
    absl::StrAppend(&pattern, " ", first[i]);
    if (shared || (write_in_graph && leaves[i].IsView())) {
      absl::StrAppend(&pattern, " ", leaves[i].view().ToString());
    }
  }
  return pattern;
}

}  // namespace

class AotFunction::Impl {
 public:
  Impl(TreeFunction fn, GraphCompiler fw_compiler, AotOptions options,
       std::shared_ptr<TraceRules> rules)
      : fn_(std::move(fn)),
        fw_compiler_(std::move(fw_compiler)),
        options_(std::move(options)),
        rules_(std::move(rules)) {}

  absl::StatusOr<AotResult> Call(const Tree& arguments,
                                 const AotCallOptions& options) {
    const std::vector<functional::Tensor>& leaves = Flatten(arguments);
    CLEAVE_RETURN_IF_ERROR(Check(arguments));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> requires_gradient,
                            Requires(leaves, options));
    const bool traced = functional::InTrace();
    CLEAVE_ASSIGN_OR_RETURN(
        const std::shared_ptr<Specialization> specialization,
        Find(arguments, requires_gradient, traced));
    last_ = specialization;
    return traced ? CallTraced(*specialization, leaves)
                  : CallCompiled(*specialization, leaves);
  }

  const AotLog& log() const { return log_; }
  int64_t traces() const { return traces_; }
  const TracedProgram* last_program() const {
    return last_ == nullptr ? nullptr : &last_->program;
  }

  std::string Guards() const {
    std::string out;
    for (const auto& specialization : specializations_) {
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
  // One trace, and what it became.
  struct Specialization {
    bool traced = false;
    std::vector<TensorType> types;  // per leaf
    std::vector<bool> active;       // per input of the graph
    std::vector<ShapeGuard> guards;
    TracedProgram program;
    std::shared_ptr<AotGraph> compiled;  // null where `traced`
  };

  absl::Status Check(const Tree& arguments) const {
    const std::vector<functional::Tensor>& leaves = Flatten(arguments);
    CLEAVE_RETURN_IF_ERROR(CheckArguments(ShapeOf(arguments), leaves));
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

  // The numbers of a trace's symbols in a call; InvalidArgument where it was
  // made for other extents.
  static absl::StatusOr<DimValues> Extents(
      const Specialization& specialization,
      const std::vector<functional::Tensor>& leaves) {
    std::vector<DimEquation> equations;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Shape& shape = leaves[i].shape();
      for (size_t d = 0; d < shape.size(); ++d) {
        equations.push_back({specialization.types[i].shape[d],
                             *shape[d].Value(),
                             absl::StrCat("axis ", d, " of tensor ", i)});
      }
    }
    DimValues values;
    CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(equations), &values));
    return values;
  }

  // Why a trace does not serve a call; OK if it does.
  static absl::Status Serves(const Specialization& specialization,
                             const std::vector<functional::Tensor>& leaves) {
    CLEAVE_ASSIGN_OR_RETURN(const DimValues values,
                            Extents(specialization, leaves));
    for (const ShapeGuard& guard : specialization.guards) {
      CLEAVE_RETURN_IF_ERROR(CheckGuard(guard, values));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<Specialization>> Find(
      const Tree& arguments, const std::vector<bool>& requires_gradient,
      bool traced) {
    const std::vector<functional::Tensor>& leaves = Flatten(arguments);
    // What any trace of the call is made for; extents may be symbols in it.
    std::string key =
        absl::StrCat(traced ? "traced " : "", ShapeOf(arguments).ToString());
    for (size_t i = 0; i < leaves.size(); ++i) {
      const bool symbolic = options_.dynamic && !traced;
      absl::StrAppend(&key, " ",
                      symbolic ? absl::StrCat(DTypeName(leaves[i].dtype()), " ",
                                              leaves[i].rank())
                               : leaves[i].type().ToString(),
                      requires_gradient[i] ? " gradient" : "");
    }
    absl::StrAppend(
        &key, AliasPattern(leaves, options_.keep_inference_input_mutations));
    std::string why = specializations_.empty() ? "first call" : "";
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      for (const std::shared_ptr<Specialization>& one : known->second) {
        if (traced) return one;
        const absl::Status serves = Serves(*one, leaves);
        if (serves.ok()) return one;
        why = std::string(serves.message());
      }
    } else if (why.empty()) {
      why = absl::StrCat("no trace for ", key);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Specialization> made,
                            Make(arguments, requires_gradient, why, traced));
    by_key_[key].push_back(made);
    specializations_.push_back(made);
    return made;
  }

  // Traces and compiles. Where a function does not hold for all extents, those
  // that it needs to be numbers are: one alone if that is enough.
  absl::StatusOr<std::shared_ptr<Specialization>> Make(
      const Tree& arguments, const std::vector<bool>& requires_gradient,
      const std::string& why, bool traced) {
    std::map<std::string, int64_t> hints;
    if (!traced) TraceTypes(Flatten(arguments), {}, &hints);
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
          MakeAt(arguments, requires_gradient, reason, traced, fixed);
      // Of the last attempt, all of whose extents are numbers, the mistake is
      // told.
      if (made.ok() || &fixed == &attempts.back()) return made;
      if (first.ok()) first = made.status();
    }
    return first;
  }

  absl::StatusOr<std::shared_ptr<Specialization>> MakeAt(
      const Tree& arguments, const std::vector<bool>& requires_gradient,
      const std::string& why, bool traced, const std::set<int64_t>& fixed) {
    auto result = std::make_shared<Specialization>();
    Specialization& made = *result;
    made.traced = traced;
    const std::vector<functional::Tensor>& leaves = Flatten(arguments);
    std::map<std::string, int64_t> hint_values;
    if (traced) {
      for (const functional::Tensor& leaf : leaves) {
        made.types.push_back(leaf.type());
      }
    } else {
      made.types = TraceTypes(leaves, fixed, &hint_values);
    }
    const bool differentiated =
        std::find(requires_gradient.begin(), requires_gradient.end(), true) !=
        requires_gradient.end();
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
          TraceProgram(fn_, ShapeOf(arguments), leaves, made.types,
                       rules_->decompositions.rules, trace_options));
      made.guards = made.program.graph.guards();
      made.guards.insert(made.guards.end(), hints.guards().begin(),
                         hints.guards().end());
    }
    const TracedProgram& program = made.program;
    clock.Phase("trace", &program.graph);
    made.active.resize(program.inputs.size());
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!requires_gradient[i]) continue;
      const int input = program.leaf_inputs[i];
      if (program.inputs[input].is_base) {
        return absl::InvalidArgumentError(absl::StrCat(
            "argument ", LeafNames(ShapeOf(arguments), "x")[i],
            " shares its storage with another one, and it is written: ask for "
            "no gradient of it, or give the storage as one tensor"));
      }
      made.active[input] = true;
    }
    if (made.traced) {
      CLEAVE_ASSIGN_OR_RETURN(
          made.program.graph,
          ReplaceOps(program.graph, rules_->decompositions));
      return result;
    }
    ++traces_;
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> examples,
                            Examples(program, leaves));
    AotOptions options = options_;
    options.num_params_buffers = LeadingInputs(program);
    CLEAVE_ASSIGN_OR_RETURN(
        made.compiled,
        AotGraph::Make(program.graph, made.active, examples, fw_compiler_,
                       options, rules_, options_.enable_log ? &log : nullptr));
    if (options_.enable_log) log_.traces.push_back(std::move(log));
    return result;
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

  // What each input of the graph is in a call.
  static functional::Tensor InputOf(
      const TracedInput& input, const std::vector<functional::Tensor>& leaves) {
    if (input.leaf < 0) return input.captured;
    return input.is_base ? leaves[input.leaf].Base() : leaves[input.leaf];
  }

  static absl::StatusOr<std::vector<TensorType>> Examples(
      const TracedProgram& program,
      const std::vector<functional::Tensor>& leaves) {
    std::vector<TensorType> types;
    for (const TracedInput& input : program.inputs) {
      types.push_back(InputOf(input, leaves).type());
    }
    return types;
  }

  absl::StatusOr<AotResult> CallCompiled(
      const Specialization& specialization,
      const std::vector<functional::Tensor>& leaves) {
    const TracedProgram& program = specialization.program;
    std::vector<cleave::Tensor> inputs;
    for (const TracedInput& input : program.inputs) {
      CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor value,
                              InputOf(input, leaves).Concrete());
      inputs.push_back(std::move(value));
    }
    CLEAVE_ASSIGN_OR_RETURN(AotGraph::Result run,
                            specialization.compiled->Run(inputs));
    std::vector<functional::Tensor> outputs(run.outputs.begin(),
                                            run.outputs.end());
    CLEAVE_ASSIGN_OR_RETURN(Tree results,
                            WriteAndView(specialization, leaves, outputs));
    AotResult result;
    result.outputs = std::move(results);
    if (specialization.compiled->function().differentiated) {
      result.backward = AotBackward(BackwardState::OfCompiled(
          program, specialization.compiled, std::move(run)));
    }
    return result;
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
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<functional::Tensor> outputs,
                            functional::CallGraph(program.graph, inputs));
    CLEAVE_ASSIGN_OR_RETURN(Tree results,
                            WriteAndView(specialization, leaves, outputs));
    AotResult result;
    result.outputs = std::move(results);
    if (std::find(specialization.active.begin(), specialization.active.end(),
                  true) != specialization.active.end()) {
      result.backward = AotBackward(BackwardState::OfTraced(
          program, specialization.active, rules_, std::move(inputs)));
    }
    return result;
  }

  // Writes the inputs that the function writes, and makes its results: tensors
  // of their own, and views.
  static absl::StatusOr<Tree> WriteAndView(
      const Specialization& specialization,
      const std::vector<functional::Tensor>& leaves,
      const std::vector<functional::Tensor>& outputs) {
    const TracedProgram& program = specialization.program;
    for (const TracedInput& input : program.inputs) {
      if (input.updated < 0) continue;
      functional::Tensor target = InputOf(input, leaves);
      CLEAVE_RETURN_IF_ERROR(target.Assign(outputs[input.updated]));
    }
    // Views were traced with symbols for extents.
    DimSubstitution extents;
    if (!specialization.traced) {
      CLEAVE_ASSIGN_OR_RETURN(const DimValues values,
                              Extents(specialization, leaves));
      for (const auto& [name, value] : values) extents.emplace(name, value);
    }
    std::vector<functional::Tensor> results;
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
        CLEAVE_ASSIGN_OR_RETURN(
            view, view.Then(step.primitive,
                            SubstituteDims(step.attributes, extents)));
      }
      results.push_back(base.WithView(std::move(view)));
    }
    return Unflatten(program.results, std::move(results));
  }

  const TreeFunction fn_;
  const GraphCompiler fw_compiler_;
  const AotOptions options_;
  const std::shared_ptr<TraceRules> rules_;
  std::vector<std::shared_ptr<Specialization>> specializations_;
  absl::flat_hash_map<std::string, std::vector<std::shared_ptr<Specialization>>>
      by_key_;
  std::shared_ptr<Specialization> last_;
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
