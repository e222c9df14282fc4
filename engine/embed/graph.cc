// Graphs: made, printed, renamed.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/embed/describe.h"
#include "engine/embed/handles.h"
#include "engine/ir/copy_graph.h"
#include "engine/ir/graph_dot.h"
#include "engine/ir/graph_json.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/substitute.h"
#include "engine/rule_text/graph_to_rule.h"
#include "engine/rules/check_calls.h"
#include "ops/status_macros.h"

namespace cleave::embed {
namespace {

absl::StatusOr<Graph> Parse(const char* text, const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, rules.context()));
  CLEAVE_RETURN_IF_ERROR(CheckCalls(graph, rules));
  return graph;
}

absl::StatusOr<std::string> Print(const Graph& graph, int32_t format) {
  switch (format) {
    case CLEAVE_FORMAT_TEXT:
      return PrintGraph(graph);
    case CLEAVE_FORMAT_JSON:
      return GraphToJson(graph);
    case CLEAVE_FORMAT_DOT:
      return GraphToDot(graph);
    case CLEAVE_FORMAT_PROVENANCE: {
      PrintOptions options;
      options.provenance = true;
      return PrintGraph(graph, options);
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("there is no format ", format));
  }
}

}  // namespace
}  // namespace cleave::embed

using cleave::embed::CheckGiven;
using cleave::embed::Guarded;
using cleave::embed::NewGraph;
using cleave::embed::NewText;

void cleave_graph_retain(cleave_graph* graph) { cleave::embed::Retain(graph); }
void cleave_graph_release(cleave_graph* graph) {
  cleave::embed::Release(graph);
}

cleave_status* cleave_graph_of_function(const cleave_rules* rules,
                                        const char* name, cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"rules", rules}, {"name", name}, {"out", out}}));
    const cleave::BudgetScope scope;
    absl::StatusOr<cleave::Graph> graph = rules->rules->Function(name);
    if (absl::IsNotFound(graph.status())) {
      return cleave::embed::NoSuchName(
          "fn", name, rules->rules->Names(cleave::ItemKind::kFn));
    }
    CLEAVE_RETURN_IF_ERROR(graph.status());
    *out = NewGraph(*std::move(graph), rules->rules);
    return absl::OkStatus();
  });
}

cleave_status* cleave_graph_parse(const cleave_rules* rules, const char* text,
                                  cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"rules", rules}, {"text", text}, {"out", out}}));
    const cleave::BudgetScope scope;
    CLEAVE_ASSIGN_OR_RETURN(cleave::Graph graph,
                            cleave::embed::Parse(text, *rules->rules));
    *out = NewGraph(std::move(graph), rules->rules);
    return absl::OkStatus();
  });
}

cleave_status* cleave_graph_with_rules(const cleave_graph* graph,
                                       const cleave_rules* rules,
                                       cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"graph", graph}, {"rules", rules}, {"out", out}}));
    const cleave::BudgetScope scope;
    cleave::Graph copy =
        graph->rules->context() == rules->rules->context()
            ? graph->graph
            : cleave::CopyGraph(graph->graph, rules->rules->context());
    CLEAVE_RETURN_IF_ERROR(cleave::CheckCalls(copy, *rules->rules));
    *out = NewGraph(std::move(copy), rules->rules);
    return absl::OkStatus();
  });
}

cleave_status* cleave_graph_print(const cleave_graph* graph, int32_t format,
                                  cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(std::string text,
                            cleave::embed::Print(graph->graph, format));
    *out = NewText(std::move(text));
    return absl::OkStatus();
  });
}

size_t cleave_graph_input_count(const cleave_graph* graph) {
  return graph == nullptr ? 0 : graph->graph.inputs().size();
}
size_t cleave_graph_output_count(const cleave_graph* graph) {
  return graph == nullptr ? 0 : graph->graph.outputs().size();
}

cleave_status* cleave_graph_signature(const cleave_graph* graph,
                                      cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}, {"out", out}}));
    *out = NewText(cleave::embed::SignatureJson(graph->graph));
    return absl::OkStatus();
  });
}

cleave_status* cleave_graph_substitute(const cleave_graph* graph,
                                       const char* const* names,
                                       const char* const* sizes, size_t count,
                                       cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}, {"out", out}}));
    const cleave::BudgetScope scope;
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> variables,
                            cleave::embed::ReadTexts(names, count, "names"));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                            cleave::embed::ReadTexts(sizes, count, "sizes"));
    cleave::DimSubstitution values;
    for (size_t i = 0; i < count; ++i) {
      CLEAVE_ASSIGN_OR_RETURN(const cleave::Dim size,
                              cleave::Dim::Parse(texts[i]));
      if (size.Value().has_value() && *size.Value() < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the size `", variables[i], "` is ", texts[i]));
      }
      if (!values.emplace(variables[i], size).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", variables[i], "` is given twice"));
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(cleave::Graph substituted,
                            cleave::SubstituteDims(graph->graph, values));
    *out = NewGraph(std::move(substituted), graph->rules);
    return absl::OkStatus();
  });
}

cleave_status* cleave_graph_to_rule(const cleave_graph* graph, const char* name,
                                    cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"graph", graph}, {"name", name}, {"out", out}}));
    const cleave::BudgetScope scope;
    cleave::GraphToOpOptions options;
    options.keep_inputs = true;
    CLEAVE_ASSIGN_OR_RETURN(
        const cleave::WrittenOp op,
        cleave::GraphToOp(graph->graph, name, *graph->rules, options));
    *out = NewText(absl::StrCat("language 1\n\n", op.text));
    return absl::OkStatus();
  });
}
