#include "testing/check/layers/prepare_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

// Operands are made for every pattern and copied for derivatives.
constexpr int64_t kMaxSampleElements = 1 << 24;

}  // namespace

bool IsRejection(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument;
}

void AddProblem(PreparedCalls& prepared, const absl::Status& status) {
  // Other samples would most likely come to the same end, each in its time.
  prepared.exceeded |= absl::IsResourceExhausted(status);
  const std::string message(status.message());
  if (std::find(prepared.problems.begin(), prepared.problems.end(), message) ==
      prepared.problems.end()) {
    prepared.problems.push_back(message);
  }
}

double ElementCount(const SampledCall& call) {
  double count = 0;
  for (const TensorType& type : call.OperandTypes()) {
    double size = 1;
    for (const Dim& dim : type.shape) {
      size *= static_cast<double>(dim.Value().value_or(1));
    }
    count += size;
  }
  return count;
}

bool Prepare(const OpContext& context, SampledCall call, bool defaults,
             PreparedCalls& prepared, absl::Status* refusal) {
  call.points = context.points;
  absl::StatusOr<Graph> graph = MakeCallGraph(context.rules(), call);
  if (!graph.ok()) {
    if (IsRejection(graph.status())) {
      ++prepared.rejected;
      if (refusal != nullptr) *refusal = graph.status();
    } else {
      AddProblem(prepared, graph.status());
    }
    return false;
  }
  if (HasNegativeExtent(*graph)) {
    ++prepared.rejected;
    return false;
  }
  if (ElementCount(call) > static_cast<double>(kMaxSampleElements)) {
    AddProblem(prepared, absl::ResourceExhaustedError(absl::StrCat(
                             "the operands of a sample have more than ",
                             kMaxSampleElements, " elements")));
    return false;
  }
  absl::StatusOr<CallGraphs> graphs = MakeCallGraphs(context.rules(), call);
  if (!graphs.ok()) {
    AddProblem(prepared, graphs.status());
    return false;
  }
  TellInts(*graphs, call);
  absl::StatusOr<Domain> domain =
      Domain::Make(*context.clauses, call, graphs->body);
  if (!domain.ok()) {
    AddProblem(prepared, domain.status());
    return false;
  }
  prepared.calls.push_back(
      {std::move(call), *std::move(graphs), defaults, *std::move(domain)});
  return true;
}

std::vector<DType> WantedDTypes(const OpContext& context,
                                const SignatureSampler& sampler) {
  std::vector<DType> dtypes = sampler.DTypes();
  dtypes.erase(std::remove_if(dtypes.begin(), dtypes.end(),
                              [&](DType d) { return !context.Wants(d); }),
               dtypes.end());
  return dtypes;
}

AfterRefusal RowMoves::Next(const absl::Status& refusal,
                            const std::vector<int>& kept, DrawOptions& options,
                            PairCover* cover) {
  const std::set<std::string>* const names = refusals_.NamesOf(refusal);
  if (names == nullptr) {
    options.redrawn.reset();
    return AfterRefusal::kAnew;
  }
  const std::vector<int> refused = *options.row;
  SignatureSampler::Blame blame;
  const bool moved = sampler_.Move(*names, kept, options, blame);
  const bool learnt = blame.alone && blame.factors.size() <= 2;
  if (cover != nullptr && learnt) {
    cover->Forbid(refused, blame.factors);
  } else if (cover != nullptr) {
    for (const int factor : blame.factors) cover->Suspect(refused, factor);
  }
  if (moved) return AfterRefusal::kMoved;
  options.redrawn.reset();
  return learnt ? AfterRefusal::kForbidden : AfterRefusal::kAnew;
}

}  // namespace cleave
