// The declarations of rules, as JSON for hosts. Internal to engine/embed.

#ifndef CLEAVE_ENGINE_EMBED_DESCRIBE_H_
#define CLEAVE_ENGINE_EMBED_DESCRIBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"

namespace cleave::embed {

// The texts that cleave.h shows for cleave_rules_names, _describe and
// _coverage, for cleave_graph_signature, and for a run's report.
std::string NamesJson(const RuleSet& rules);
absl::StatusOr<std::string> DescribeJson(const RuleSet& rules,
                                         absl::string_view name);
absl::StatusOr<std::string> CoverageJson(const RuleSet& rules,
                                         absl::string_view op);
std::string SignatureJson(const Graph& graph);
std::string ReportJson(const RunReport& report);

// NotFound, with the closest of the names.
absl::Status NoSuchName(absl::string_view what, absl::string_view name,
                        const std::vector<std::string>& names);

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_DESCRIBE_H_
