// DebugReport as text and as JSON.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "testing/debug/debug.h"

namespace cleave {
namespace {

using Json = nlohmann::ordered_json;

// "f, f.rules:3".
std::string OriginOf(const DebugRow& row) {
  if (row.rule.empty() || row.file.empty()) return row.rule;
  return absl::StrCat(row.rule, ", ", row.file, ":", row.line);
}

std::string IndexText(const std::vector<int64_t>& index) {
  return index.empty() ? "" : absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

std::string UlpText(const std::optional<ElementError>& error) {
  return error ? ErrorText(*error) : "";
}

std::vector<std::string> CellsOf(const DebugRow& row) {
  std::string last = row.operation.empty() ? "input" : row.operation;
  const std::string origin = OriginOf(row);
  if (!origin.empty()) absl::StrAppend(&last, "  // ", origin);
  return {row.name,
          row.index ? IndexText(*row.index) : "",
          row.computed,
          row.no_exact_value.empty() ? row.exact : "no exact value",
          UlpText(row.error),
          UlpText(row.own),
          row.condition ? ErrorText(*row.condition) : "",
          last};
}

// Columns with something in them, aligned but for the last.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (size_t i = 1; i < lines.size(); ++i) {
    for (size_t c = 0; c < widths.size(); ++c) {
      widths[c] = std::max(widths[c], lines[i][c].size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string row;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] == 0) continue;
      absl::StrAppend(&row, line[c]);
      const size_t width = std::max(widths[c], lines[0][c].size());
      row.append(width - std::min(width, line[c].size()) + 2, ' ');
    }
    row.erase(row.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, row, "\n");
  }
  return text;
}

// "%3[2] = sub(%1, %2)  // f, f.rules:3".
std::string NodeText(const DebugRow& row, const std::vector<int64_t>& index) {
  std::string text =
      absl::StrCat(row.name, IndexText(index), " = ",
                   row.operation.empty() ? "the input" : row.operation);
  const std::string origin = OriginOf(row);
  if (!origin.empty()) absl::StrAppend(&text, "  // ", origin);
  return text;
}

void AppendCause(const DebugReport& report, const DebugOutput& output,
                 std::string* text) {
  const DebugCause& cause = *output.cause;
  constexpr size_t kMostSteps = 16;
  std::vector<std::string> names;
  for (const DebugStep& step : cause.path) {
    if (names.size() == kMostSteps) {
      names.push_back("..");
      break;
    }
    names.push_back(
        absl::StrCat(report.rows[step.row].name, IndexText(step.index)));
  }
  absl::StrAppend(text, output.name, IndexText(output.worst->index),
                  " is off by ", ErrorText(output.worst->error.ulp),
                  " ulp: ", absl::StrJoin(names, " <- "), "\n");
  const DebugStep& first = cause.path[cause.first];
  absl::StrAppend(text, "first node that is off: ",
                  NodeText(report.rows[first.row], first.index), "\n  ",
                  FindingName(cause.finding));
  if (cause.condition) {
    absl::StrAppend(text, ", condition number ", ErrorText(*cause.condition));
  }
  absl::StrAppend(text, ": ", cause.message, "\n");
  for (const size_t jump : cause.jumps) {
    const DebugStep& step = cause.path[jump];
    absl::StrAppend(text, "  it jumps again at ",
                    NodeText(report.rows[step.row], step.index), "\n");
  }
  if (cause.inside == nullptr) return;
  const std::string inside =
      absl::StrCat(cause.inside_name, ":\n", cause.inside->ToString());
  absl::StrAppend(text, "  ",
                  absl::StrReplaceAll(inside.substr(0, inside.size() - 1),
                                      {{"\n\n", "\n\n  "}, {"\n", "\n  "}}),
                  "\n");
}

// JSON has no infinities.
Json NumberJson(double value) {
  if (std::isfinite(value)) return value;
  return ErrorText(value);
}

Json StepJson(const DebugReport& report, const DebugStep& step) {
  return {{"node", report.rows[step.row].name},
          {"element", step.index},
          {"error_ulp", NumberJson(step.error.ulp)}};
}

Json ReportJson(const DebugReport& report);

Json CauseJson(const DebugReport& report, const DebugCause& cause) {
  Json json;
  json["finding"] = FindingName(cause.finding);
  json["message"] = cause.message;
  json["first"] = StepJson(report, cause.path[cause.first]);
  if (cause.condition) json["condition"] = NumberJson(*cause.condition);
  json["path"] = Json::array();
  for (const DebugStep& step : cause.path) {
    json["path"].push_back(StepJson(report, step));
  }
  json["jumps"] = Json::array();
  for (const size_t jump : cause.jumps) {
    json["jumps"].push_back(StepJson(report, cause.path[jump]));
  }
  if (cause.inside != nullptr) {
    json["inside"] = {{"name", cause.inside_name},
                      {"report", ReportJson(*cause.inside)}};
  }
  return json;
}

Json RowJson(const DebugRow& row) {
  Json json = {{"name", row.name}, {"type", row.type}};
  if (!row.operation.empty()) json["operation"] = row.operation;
  if (!row.rule.empty()) json["rule"] = row.rule;
  if (!row.file.empty()) json["place"] = absl::StrCat(row.file, ":", row.line);
  if (row.index) {
    json["element"] = *row.index;
    json["computed"] = row.computed;
    json["exact"] = row.exact;
  }
  if (row.error) {
    json["error_ulp"] = NumberJson(row.error->ulp);
    json["error_eps"] = NumberJson(row.error->relative);
    json["error_absolute"] = NumberJson(row.error->absolute);
  }
  if (row.own) json["own_ulp"] = NumberJson(row.own->ulp);
  if (row.inherited_ulp) {
    json["inherited_ulp"] = NumberJson(*row.inherited_ulp);
  }
  if (row.condition) json["condition"] = NumberJson(*row.condition);
  if (!row.no_exact_value.empty()) json["no_exact_value"] = row.no_exact_value;
  return json;
}

Json ReportJson(const DebugReport& report) {
  Json json = {
      {"bits", report.bits}, {"ulp", report.ulp}, {"atol", report.absolute}};
  json["nodes"] = Json::array();
  for (const DebugRow& row : report.rows) json["nodes"].push_back(RowJson(row));
  json["outputs"] = Json::array();
  for (const DebugOutput& output : report.outputs) {
    Json found = {{"name", output.name},
                  {"node", report.rows[output.row].name}};
    if (output.worst) {
      found["element"] = output.worst->index;
      found["error_ulp"] = NumberJson(output.worst->error.ulp);
    }
    found["off"] = output.off;
    if (output.cause) found["cause"] = CauseJson(report, *output.cause);
    json["outputs"].push_back(std::move(found));
  }
  json["differs"] = report.differs;
  json["notes"] = report.notes;
  return json;
}

}  // namespace

std::string DebugReport::ToString() const {
  std::vector<std::vector<std::string>> lines = {
      {"node", "at", "computed", "exact", "ulp", "own", "cond", ""}};
  for (const DebugRow& row : rows) lines.push_back(CellsOf(row));
  std::string text = Aligned(lines);
  absl::StrAppend(&text, "\n");
  for (const DebugRow& row : rows) {
    if (row.no_exact_value.empty()) continue;
    absl::StrAppend(&text, row.name,
                    " has no exact value: ", row.no_exact_value, "\n");
  }
  bool all_known = true;
  for (const DebugOutput& output : outputs) {
    if (output.off) {
      AppendCause(*this, output, &text);
    } else if (output.worst) {
      absl::StrAppend(&text, output.name, IndexText(output.worst->index),
                      " is within ", ErrorText(output.worst->error.ulp),
                      " ulp\n");
    } else {
      const bool empty = rows[output.row].no_exact_value.empty();
      absl::StrAppend(
          &text, output.name,
          empty ? " has no elements\n" : ": nothing is known of its error\n");
      all_known &= empty;
    }
  }
  if (!off() && all_known) {
    absl::StrAppend(&text, "no node is off: each output is within ",
                    ErrorText(ulp), " ulp");
    if (absolute > 0) {
      absl::StrAppend(&text, ", or ", ErrorText(absolute));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const std::string& note : notes) absl::StrAppend(&text, note, "\n");
  return text;
}

std::string DebugReport::ToJson() const {
  // Names of files may be any bytes.
  return ReportJson(*this).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cleave
