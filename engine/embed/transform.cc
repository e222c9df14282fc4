// Transforms: graphs in, graphs out.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/embed/handles.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/derivatives.h"
#include "transforms/vjp/transpose.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave::embed {
namespace {

absl::StatusOr<std::vector<int>> ReadAxes(const int32_t* axes, size_t count,
                                          size_t expected, const char* name) {
  if (count != expected || (axes == nullptr && count > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("`", name, "` has ",
                                                   axes == nullptr ? 0 : count,
                                                   " entries, not ", expected));
  }
  return std::vector<int>(axes, axes + count);
}

absl::StatusOr<Graph> Batch(const cleave_graph& graph, const int32_t* in_axes,
                            size_t in_count, const char* batch,
                            const int32_t* out_axes, size_t out_count) {
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<int> in,
      ReadAxes(in_axes, in_count, graph.graph.inputs().size(), "in_axes"));
  std::vector<int> out(graph.graph.outputs().size(), 0);
  if (out_axes != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(
        out, ReadAxes(out_axes, out_count, out.size(), "out_axes"));
  }
  Dim size = Dim::Variable(FreshBatch(graph.graph));
  if (batch != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(size, Dim::Parse(batch));
    if (size.Value().has_value() && *size.Value() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the batch is of size ", batch));
    }
  }
  return Vmap(graph.graph, in, size, out, *graph.rules);
}

absl::StatusOr<Graph> Jacobian(const cleave_graph& graph, size_t input,
                               int32_t kind) {
  if (input >= graph.graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no input ", input, ": the graph has ",
                     graph.graph.inputs().size()));
  }
  const int place = static_cast<int>(input);
  switch (kind) {
    case CLEAVE_JACOBIAN_FORWARD:
      return JacobianForward(graph.graph, place, *graph.rules);
    case CLEAVE_JACOBIAN_REVERSE:
      return JacobianReverse(graph.graph, place, *graph.rules);
    case CLEAVE_HESSIAN:
      return Hessian(graph.graph, place, *graph.rules);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("there is no kind of derivatives ", kind));
  }
}

// Calls `transform`, and does around it what all transforms with one result do.
template <typename F>
cleave_status* Transformed(const cleave_graph* graph,
                           const cleave_call_options* options,
                           cleave_graph** out, const F& transform) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(Graph made, transform());
    *out = NewGraph(std::move(made), graph->rules);
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace cleave::embed

using cleave::embed::CallScope;
using cleave::embed::CheckGiven;
using cleave::embed::Guarded;
using cleave::embed::NewGraph;
using cleave::embed::ReadFlags;
using cleave::embed::Transformed;

cleave_status* cleave_vmap(const cleave_graph* graph, const int32_t* in_axes,
                           size_t in_count, const char* batch,
                           const int32_t* out_axes, size_t out_count,
                           const cleave_call_options* options,
                           cleave_graph** out) {
  return Transformed(graph, options, out, [&]() {
    return cleave::embed::Batch(*graph, in_axes, in_count, batch, out_axes,
                                out_count);
  });
}

cleave_status* cleave_jvp(const cleave_graph* graph, const uint8_t* active,
                          size_t count, const cleave_call_options* options,
                          uint8_t* has_tangent, cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> flags,
                            ReadFlags(*graph, active, count, "active"));
    CLEAVE_ASSIGN_OR_RETURN(cleave::JvpResult jvp,
                            cleave::Jvp(graph->graph, flags, *graph->rules));
    auto* made = NewGraph(std::move(jvp.graph), graph->rules);
    for (size_t i = 0; has_tangent != nullptr && i < jvp.has_tangent.size();
         ++i) {
      has_tangent[i] = jvp.has_tangent[i] ? 1 : 0;
    }
    *out = made;
    return absl::OkStatus();
  });
}

cleave_status* cleave_vjp(const cleave_graph* graph, const uint8_t* active,
                          size_t count, const cleave_call_options* options,
                          cleave_graph** out) {
  return Transformed(
      graph, options, out, [&]() -> absl::StatusOr<cleave::Graph> {
        CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> flags,
                                ReadFlags(*graph, active, count, "active"));
        CLEAVE_ASSIGN_OR_RETURN(
            cleave::VjpResult vjp,
            cleave::Vjp(graph->graph, flags, *graph->rules));
        return std::move(vjp.graph);
      });
}

cleave_status* cleave_grad(const cleave_graph* graph, const uint8_t* active,
                           size_t count, int32_t value,
                           const cleave_call_options* options,
                           cleave_graph** out) {
  return Transformed(
      graph, options, out, [&]() -> absl::StatusOr<cleave::Graph> {
        CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> flags,
                                ReadFlags(*graph, active, count, "active"));
        return value != 0
                   ? cleave::ValueAndGrad(graph->graph, flags, *graph->rules)
                   : cleave::Grad(graph->graph, flags, *graph->rules);
      });
}

cleave_status* cleave_jacobian(const cleave_graph* graph, size_t input,
                               int32_t kind, const cleave_call_options* options,
                               cleave_graph** out) {
  return Transformed(graph, options, out, [&]() {
    return cleave::embed::Jacobian(*graph, input, kind);
  });
}

cleave_status* cleave_linearize(const cleave_graph* graph,
                                const uint8_t* active, size_t count,
                                const cleave_call_options* options,
                                cleave_graph** primal, cleave_graph** linear,
                                size_t* residuals) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph},
                                       {"primal", primal},
                                       {"linear", linear},
                                       {"residuals", residuals}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> flags,
                            ReadFlags(*graph, active, count, "active"));
    CLEAVE_ASSIGN_OR_RETURN(
        cleave::Linearization halves,
        cleave::Linearize(graph->graph, flags, *graph->rules));
    std::unique_ptr<cleave_graph> first(
        NewGraph(std::move(halves.primal), graph->rules));
    *linear = NewGraph(std::move(halves.linear), graph->rules);
    *primal = first.release();
    *residuals = halves.residuals;
    return absl::OkStatus();
  });
}

cleave_status* cleave_transpose(const cleave_graph* graph,
                                const uint8_t* linear, size_t count,
                                const cleave_call_options* options,
                                cleave_graph** out) {
  return Transformed(
      graph, options, out, [&]() -> absl::StatusOr<cleave::Graph> {
        CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> flags,
                                ReadFlags(*graph, linear, count, "linear"));
        absl::StatusOr<cleave::Graph> transposed =
            cleave::Transpose(graph->graph, flags, *graph->rules);
        // The engine's own graphs are linear; a caller's need not be.
        if (absl::IsInternal(transposed.status())) {
          return absl::InvalidArgumentError(transposed.status().message());
        }
        return transposed;
      });
}

cleave_status* cleave_expand(const cleave_graph* graph,
                             const char* const* preserve, size_t preserve_count,
                             const char* const* only, size_t only_count,
                             const cleave_call_options* options,
                             cleave_graph** out) {
  return Transformed(
      graph, options, out, [&]() -> absl::StatusOr<cleave::Graph> {
        CLEAVE_ASSIGN_OR_RETURN(
            const std::vector<std::string> kept,
            cleave::embed::ReadTexts(preserve, preserve_count, "preserve"));
        CLEAVE_ASSIGN_OR_RETURN(
            const std::vector<std::string> chosen,
            cleave::embed::ReadTexts(only, only_count, "only"));
        cleave::ExpandOptions expand;
        expand.preserve = {kept.begin(), kept.end()};
        if (!chosen.empty()) {
          expand.only = std::set<std::string>(chosen.begin(), chosen.end());
        }
        return cleave::Expand(graph->graph, *graph->rules, expand);
      });
}

cleave_status* cleave_simplify(const cleave_graph* graph, int32_t approx,
                               const cleave_call_options* options,
                               cleave_graph** out) {
  return Transformed(
      graph, options, out, [&]() -> absl::StatusOr<cleave::Graph> {
        cleave::SimplifyOptions simplify;
        simplify.approx = approx != 0;
        return cleave::Simplify(graph->graph, *graph->rules, simplify);
      });
}
