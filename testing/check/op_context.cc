#include "testing/check/op_context.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "testing/check/read_example.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

// Errors that a call may meet and that no rule is wrong for.
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

// Operands are made for every pattern and copied for derivatives.
constexpr int64_t kMaxSampleElements = 1 << 24;

// In double: declared extents may be of any size.
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

// Adds `call` if the op takes it. Whether it did.
bool Prepare(const OpContext& context, SampledCall call, bool defaults,
             PreparedCalls& prepared) {
  absl::StatusOr<Graph> graph = MakeCallGraph(context.rules(), call);
  if (!graph.ok()) {
    if (IsRejection(graph.status())) {
      ++prepared.rejected;
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
  prepared.calls.push_back({std::move(call), *std::move(graphs), defaults});
  return true;
}

// The same call with other extents: equal ones stay equal.
SampledCall WithOtherExtents(SampledCall call, SignatureSampler& sampler) {
  std::map<int64_t, int64_t> extents;
  for (SampledInput& input : call.inputs) {
    for (auto& type : input.types) {
      if (!type) continue;
      for (Dim& dim : type->shape) {
        const int64_t extent = dim.Value().value_or(1);
        const auto it = extents.emplace(extent, sampler.DrawExtent()).first;
        dim = Dim(it->second);
      }
    }
  }
  return call;
}

// Calls at the shape [n], if the op is elementwise there.
bool PrepareElementwise(const OpContext& context, SignatureSampler& sampler,
                        PreparedCalls& prepared) {
  const Shape shape = {Dim::Variable("n")};
  DrawOptions options;
  options.shape = shape;
  options.vary_attributes = false;
  const std::vector<DType> dtypes = sampler.DTypes();
  if (dtypes.empty()) return false;
  options.dtype = dtypes.front();
  const absl::StatusOr<std::vector<Attributes>> variants =
      sampler.AttributeVariants();
  if (!variants.ok()) return false;
  for (DType dtype : dtypes) {
    if (!context.Wants(dtype)) continue;
    options.dtype = dtype;
    for (size_t v = 0; v < variants->size(); ++v) {
      absl::StatusOr<SampledCall> call = sampler.Draw(options);
      if (!call.ok()) return false;
      for (const TensorType& type : call->OperandTypes()) {
        // Sizes of the signature's own stay numbers.
        if (type.shape != shape) return false;
      }
      call->attributes = (*variants)[v];
      if (HasFractionForInts(*call)) continue;
      const size_t before = prepared.calls.size();
      Prepare(context, *std::move(call), v == 0, prepared);
      if (prepared.exceeded) return false;
      if (prepared.calls.size() > before &&
          !IsElementwise(prepared.calls.back().graphs.body)) {
        prepared = PreparedCalls();
        return false;
      }
    }
  }
  return !prepared.calls.empty();
}

}  // namespace

std::string OpContext::Replay() const {
  return absl::StrCat("cleave check ", rules().SourceOf(*shown).name(),
                      " --op '",
                      item->kind == ItemKind::kJvp       ? "jvp "
                      : item->kind == ItemKind::kRewrite ? "rewrite "
                                                         : "",
                      item->name, "' --seed ", run_seed);
}

std::string OpContext::Place() const {
  const Source& source = rules().SourceOf(*shown);
  return absl::StrCat(source.name(), ":",
                      source.PositionOf(shown->range.begin).line);
}

std::string OpContext::Place(const Graph& body, int result) const {
  const ProvenanceId id = body.node(body.outputs()[result].value).provenance;
  if (id == 0) return Place();
  const Provenance& provenance = rules().context()->provenance(id);
  return absl::StrCat(provenance.file, ":", provenance.line, " (",
                      provenance.rule, ")");
}

DType MainDType(const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  for (const TensorType& type : types) {
    if (IsFloat(type.dtype)) return type.dtype;
  }
  return types.empty() ? DType::kF32 : types.front().dtype;
}

DType WidestDType(const PreparedCalls& calls) {
  DType widest = DType::kBF16;
  for (const PreparedCall& call : calls.calls) {
    for (const TensorType& type : call.call.OperandTypes()) {
      if (IsFloat(type.dtype) &&
          SignificandBits(type.dtype) > SignificandBits(widest)) {
        widest = type.dtype;
      }
    }
  }
  return widest;
}

PreparedCalls PrepareCalls(const OpContext& context) {
  PreparedCalls prepared;
  SignatureSampler sampler(*context.item, context.seed);
  prepared.elementwise = PrepareElementwise(context, sampler, prepared);
  return prepared.elementwise ? prepared : PrepareConcreteCalls(context);
}

PreparedCalls PrepareConcreteCalls(const OpContext& context) {
  PreparedCalls prepared;
  SignatureSampler sampler(*context.item, context.seed + 1);
  // The calls of the examples, as they stand, in f64, and with other extents:
  // for attributes whose values no sampler knows (the equation of einsum).
  for (const Item* example :
       ExamplesOf(context.item->name, context.rules().examples())) {
    absl::StatusOr<ExampleCall> read = ReadExample(*context.item, *example);
    if (!read.ok()) continue;
    for (bool wide : {false, true}) {
      if (prepared.exceeded) break;
      SampledCall call = read->call;
      for (SampledInput& input : call.inputs) {
        for (auto& type : input.types) {
          if (wide && type && type->dtype == DType::kF32) {
            type->dtype = DType::kF64;
          }
        }
      }
      SampledCall resized = WithOtherExtents(call, sampler);
      Prepare(context, std::move(call), false, prepared);
      Prepare(context, std::move(resized), false, prepared);
    }
  }
  DrawOptions options;
  std::vector<DType> dtypes = sampler.DTypes();
  dtypes.erase(std::remove_if(dtypes.begin(), dtypes.end(),
                              [&](DType d) { return !context.Wants(d); }),
               dtypes.end());
  int trials = 0;
  while (trials < kMaxSignatureTrials && !prepared.exceeded &&
         static_cast<int>(prepared.calls.size()) < kMaxSignatures &&
         !context.Expired()) {
    // The dtypes in turn, floats more often.
    if (!dtypes.empty()) {
      options.dtype = dtypes[prepared.calls.size() % dtypes.size()];
    }
    options.vary_attributes = trials % 3 != 0;
    ++trials;
    absl::StatusOr<SampledCall> call = sampler.Draw(options);
    if (!call.ok()) {
      if (IsRejection(call.status())) continue;
      AddProblem(prepared, call.status());
      break;
    }
    Prepare(context, *std::move(call), !options.vary_attributes, prepared);
  }
  // The first to fail is then a small one.
  std::stable_sort(prepared.calls.begin(), prepared.calls.end(),
                   [](const PreparedCall& a, const PreparedCall& b) {
                     return ElementCount(a.call) < ElementCount(b.call);
                   });
  return prepared;
}

}  // namespace cleave
