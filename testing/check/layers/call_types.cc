#include "testing/check/layers/call_types.h"

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/rewrite/expand.h"

namespace cleave {
namespace {

// Whether the graphs of the call can be made with `to` for extents of `from`.
bool TakesAt(const OpContext& context, SampledCall call, int64_t from,
             int64_t to) {
  for (SampledInput& input : call.inputs) {
    for (std::optional<TensorType>& type : input.types) {
      if (!type) continue;
      for (Dim& dim : type->shape) {
        if (dim.Value() == from) dim = Dim(to);
      }
    }
  }
  return MakeCallGraphs(context.rules(), call).ok();
}

}  // namespace

bool SameType(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (int d = 0; d < a.rank(); ++d) {
    const auto x = a.shape[d].Value();
    const auto y = b.shape[d].Value();
    if (x && y && *x != *y) return false;
  }
  return true;
}

std::string DifferentTypes(const Graph& declared, const Graph& graph) {
  if (declared.outputs().size() != graph.outputs().size()) {
    return absl::StrCat(graph.outputs().size(), " results");
  }
  for (size_t r = 0; r < declared.outputs().size(); ++r) {
    const TensorType& want = declared.type(declared.outputs()[r].value);
    const TensorType& got = graph.type(graph.outputs()[r].value);
    if (!SameType(want, got)) return got.ToString();
  }
  return "";
}

std::string TypesOf(const Graph& graph) {
  std::vector<std::string> types;
  for (const NamedValue& output : graph.outputs()) {
    types.push_back(graph.type(output.value).ToString());
  }
  return absl::StrJoin(types, ", ");
}

Counterexample ExplainTypes(const OpContext& context, const SampledCall& call,
                            std::string what, std::string expected,
                            std::string got) {
  Counterexample example;
  example.call = call.ToString();
  example.what = std::move(what);
  example.expected = std::move(expected);
  example.got = std::move(got);
  example.place = context.Place();
  example.replay = context.Replay();
  return example;
}

bool SpecTakes(const OpContext& context, const Graph& call_graph) {
  const absl::StatusOr<Signature> signature = CallSignature(call_graph);
  if (!signature.ok()) return false;
  const absl::StatusOr<const Graph*> spec = context.rules().Spec(*signature);
  if (!spec.ok() || *spec == nullptr) return false;
  const absl::StatusOr<Graph> expanded = Expand(**spec, context.rules());
  return expanded.ok() && DifferentTypes(call_graph, *expanded).empty();
}

std::optional<Verdict> RefusedByBody(const OpContext& context,
                                     const SampledCall& call, int64_t extent,
                                     const Graph& call_graph,
                                     const absl::Status& status) {
  const auto is_taken = [&] {
    if (context.item->laws.empty()) return SpecTakes(context, call_graph);
    return TakesAt(context, call, extent, extent / 2) &&
           TakesAt(context, call, extent, 4);
  };
  // An index that lies outside is wrong whatever is meant.
  if (!absl::IsOutOfRange(status) &&
      !(absl::IsInvalidArgument(status) && is_taken())) {
    return std::nullopt;
  }
  return Verdict::Disagrees(
      ExplainTypes(context, call, "expansion of an accepted call",
                   TypesOf(call_graph), std::string(status.message())));
}

}  // namespace cleave
