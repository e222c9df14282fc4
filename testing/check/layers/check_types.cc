#include "testing/check/layers/check_types.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/budget.h"
#include "testing/check/layers/call_types.h"
#include "testing/check/layers/check_complex.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/signature_sampler.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {
namespace {

// All operands have the same shape: none is rejected for how sizes meet.
bool HaveOneShape(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  for (const TensorType& type : types) {
    if (type.shape != types.front().shape) return false;
  }
  return true;
}

// The same call, in which what has the dtype `from` has `to`.
SampledCall WithDType(SampledCall call, DType from, DType to) {
  for (SampledInput& input : call.inputs) {
    for (std::optional<TensorType>& type : input.types) {
      if (type && type->dtype == from) type->dtype = to;
    }
  }
  for (auto& [variable, dtype] : call.dtypes) {
    if (dtype == from) dtype = to;
  }
  return call;
}

// A dtype of `all` in which the body takes the call that it refuses as it is:
// then not the sizes are at fault.
std::optional<DType> TakenIn(const OpContext& context, const SampledCall& call,
                             const std::vector<DType>& all) {
  const DType from = MainDType(call);
  for (const DType to : all) {
    if (to != from &&
        MakeCallGraphs(context.rules(), WithDType(call, from, to)).ok()) {
      return to;
    }
  }
  return std::nullopt;
}

// The verdict on one call that the op accepts; nullopt if its types agree.
std::optional<Verdict> Disagreement(const OpContext& context,
                                    const SampledCall& call,
                                    const CallGraphs& graphs) {
  const std::string body = DifferentTypes(graphs.call, graphs.body);
  if (!body.empty()) {
    return Verdict::Disagrees(ExplainTypes(context, call, "type of the body",
                                           TypesOf(graphs.call), body));
  }
  if (!graphs.spec) return std::nullopt;
  const std::string spec = DifferentTypes(graphs.call, *graphs.spec);
  if (spec.empty()) return std::nullopt;
  return Verdict::Disagrees(ExplainTypes(context, call, "type of the spec",
                                         TypesOf(graphs.call), spec));
}

}  // namespace

Verdict CheckTypes(const OpContext& context, const PreparedCalls& concrete) {
  Verdict verdict;
  std::set<std::string> dtypes;
  int rejected = concrete.rejected;
  int undeclared = 0;
  std::string first_undeclared;
  const auto agrees = [&](const SampledCall& call) {
    Merge(verdict, Verdict::Agrees(1));
    dtypes.insert(std::string(DTypeName(MainDType(call))));
  };
  // Run, too: the shapes of the tensors are those of the types.
  ValueSampler values(context.seed + 7);
  for (const PreparedCall& prepared : concrete.calls) {
    if (auto found = Disagreement(context, prepared.call, prepared.graphs)) {
      return *found;
    }
    const auto results = Interpret(
        prepared.graphs.body, values.Tensors(prepared.call, Pattern::kNormal));
    for (size_t r = 0; results.ok() && r < results->size(); ++r) {
      const TensorType& declared =
          prepared.graphs.call.type(prepared.graphs.call.outputs()[r].value);
      if (!SameType(declared, (*results)[r].type())) {
        return Verdict::Disagrees(
            ExplainTypes(context, prepared.call, "type of the tensor computed",
                         declared.ToString(), (*results)[r].type().ToString()));
      }
    }
    agrees(prepared.call);
  }
  // More signatures, typed only.
  SignatureSampler sampler(*context.item, context.seed + 8);
  sampler.FixSizes(context.sizes);
  const std::vector<DType> sampled = sampler.DTypes();
  const std::vector<DType> complex = ComplexDTypes(*context.item);
  const int typed = kTypedSignatures +
                    kTypedComplexSignatures * static_cast<int>(complex.size());
  for (int trial = 0; trial < typed && !context.Expired(); ++trial) {
    DrawOptions options;
    const std::vector<DType>& all =
        trial < kTypedSignatures && !sampled.empty() ? sampled : complex;
    if (!all.empty()) options.dtype = all[trial % all.size()];
    options.distinct = trial % 4 == 3;
    const absl::StatusOr<SampledCall> call = sampler.Draw(options);
    if (call.status().code() == absl::StatusCode::kUnimplemented) break;
    if (!call.ok()) continue;
    const absl::StatusOr<Graph> graph = MakeCallGraph(context.rules(), *call);
    if (!graph.ok()) {
      if (graph.status().code() == absl::StatusCode::kInvalidArgument) {
        ++rejected;
      } else {
        Merge(verdict,
              Verdict::Inconclusive(std::string(graph.status().message())));
      }
      continue;
    }
    if (HasNegativeExtent(*graph)) {
      ++rejected;
      continue;
    }
    const absl::StatusOr<CallGraphs> graphs =
        MakeCallGraphs(context.rules(), *call);
    if (!graphs.ok()) {
      const std::string message(graphs.status().message());
      if (graphs.status().code() == absl::StatusCode::kUnimplemented ||
          EndsCall(graphs.status())) {
        Merge(verdict, Verdict::Inconclusive(message));
        continue;
      }
      const std::optional<DType> taken = TakenIn(context, *call, all);
      if (!taken && !HaveOneShape(*call) && !SpecTakes(context, *graph) &&
          graphs.status().code() == absl::StatusCode::kInvalidArgument) {
        // Sizes that do not go together: the body finds out.
        if (undeclared++ == 0) first_undeclared = message;
        continue;
      }
      Merge(verdict,
            Verdict::Disagrees(ExplainTypes(
                context, *call, "expansion of an accepted call",
                absl::StrCat(
                    TypesOf(*graph),
                    taken ? absl::StrCat(", as with ", DTypeName(*taken)) : ""),
                message)));
      return verdict;
    }
    if (auto found = Disagreement(context, *call, *graphs)) return *found;
    agrees(*call);
  }
  if (verdict.kind == VerdictKind::kNotChecked) {
    return Verdict::Inconclusive(
        !concrete.problems.empty()
            ? concrete.problems.front()
            : absl::StrCat("no sampled call is accepted, ", rejected,
                           " are rejected"));
  }
  verdict.notes.push_back(absl::StrCat("dtypes ", absl::StrJoin(dtypes, " ")));
  if (undeclared > 0) {
    verdict.notes.push_back(absl::StrCat(
        undeclared, " calls rejected by the body, not by a declared error: ",
        first_undeclared));
  }
  if (rejected > 0) {
    verdict.notes.push_back(absl::StrCat(rejected, " calls rejected"));
  }
  return verdict;
}

}  // namespace cleave
