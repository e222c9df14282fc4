// CheckReport as JSON, there and back.

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "testing/check/check.h"
#include "testing/check/merge_reports.h"
#include "testing/json_node.h"
#include "testing/run_shard.h"

namespace cleave {
namespace {

using nlohmann::json;

constexpr char kLine[] = "line";
constexpr char kBranch[] = "branch";

json ToJson(const Counterexample& example) {
  json object = {{"call", example.call},    {"inputs", example.inputs},
                 {"what", example.what},    {"expected", example.expected},
                 {"got", example.got},      {"place", example.place},
                 {"replay", example.replay}};
  // JSON has no infinity.
  if (std::isfinite(example.ulp)) object["ulp"] = example.ulp;
  if (std::isfinite(example.bound)) object["bound"] = example.bound;
  return object;
}

// The largest error of what is inaccurate is absent where it is infinite.
json ToJson(const HostFinding& finding) {
  json object = {{"kind", std::string(HostFailureKindName(finding.kind))},
                 {"count", finding.count},
                 {"counterexample", ToJson(finding.example)}};
  if (finding.kind == HostFailureKind::kInaccurate &&
      std::isfinite(finding.worst_ulp)) {
    object["worst_ulp"] = finding.worst_ulp;
  }
  if (!finding.worst_at.empty()) object["worst_at"] = finding.worst_at;
  return object;
}

json ToJson(const Verdict& verdict) {
  json object = {{"verdict", std::string(VerdictKindName(verdict.kind))},
                 {"samples", verdict.samples}};
  if (verdict.kind == VerdictKind::kAgrees) {
    object["strength"] = std::string(StrengthName(verdict.strength));
  }
  if (std::isfinite(verdict.worst_ulp)) object["worst_ulp"] = verdict.worst_ulp;
  if (std::isfinite(verdict.worst_part)) {
    object["worst_part_of_bound"] = verdict.worst_part;
  }
  if (!verdict.worst_at.empty()) object["worst_at"] = verdict.worst_at;
  if (!verdict.why.empty()) object["why"] = verdict.why;
  if (!verdict.notes.empty()) object["notes"] = verdict.notes;
  if (verdict.counterexample) {
    object["counterexample"] = ToJson(*verdict.counterexample);
  }
  for (const HostFinding& finding : verdict.findings) {
    object["findings"].push_back(ToJson(finding));
  }
  return object;
}

json ToJson(const RuleCoverage& item) {
  json uncovered = json::array();
  for (const UncoveredArm& arm : item.uncovered) {
    uncovered.push_back({{"place", arm.place},
                         {"what", arm.what},
                         {"text", arm.text},
                         {"marked", arm.marked},
                         {"kind", arm.is_line ? kLine : kBranch},
                         {"index", arm.index}});
  }
  return {{"item", item.item},
          {"place", item.place},
          {"lines", item.lines},
          {"covered_lines", item.covered_lines},
          {"branches", item.branches},
          {"covered_branches", item.covered_branches},
          {"uncovered", std::move(uncovered)}};
}

json TotalsJson(const CheckReport& report) {
  json totals = json::object();
  for (VerdictKind kind : {VerdictKind::kDisagrees, VerdictKind::kInconclusive,
                           VerdictKind::kNotIndependent}) {
    totals[std::string(VerdictKindName(kind))] = report.Count(kind);
  }
  const int parts = report.CountSweepParts();
  totals["rules"] = report.ops.size() - parts;
  if (parts > 0) totals["sweep_parts"] = parts;
  return totals;
}

// A number that is not finite is absent from the JSON.
absl::StatusOr<double> ReadNumber(const JsonNode& node,
                                  const std::string& member) {
  if (!node.Has(member)) return std::numeric_limits<double>::infinity();
  return node[member].Number();
}

absl::StatusOr<Counterexample> ReadCounterexample(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
      {"call", "inputs", "what", "expected", "got", "place", "replay"},
      {"ulp", "bound"}));
  Counterexample example;
  for (const auto& [member, value] :
       {std::pair("call", &example.call), std::pair("inputs", &example.inputs),
        std::pair("what", &example.what),
        std::pair("expected", &example.expected),
        std::pair("got", &example.got), std::pair("place", &example.place),
        std::pair("replay", &example.replay)}) {
    CLEAVE_ASSIGN_OR_RETURN(*value, node[member].String());
  }
  CLEAVE_ASSIGN_OR_RETURN(example.ulp, ReadNumber(node, "ulp"));
  CLEAVE_ASSIGN_OR_RETURN(example.bound, ReadNumber(node, "bound"));
  return example;
}

absl::StatusOr<HostFinding> ReadFinding(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers({"kind", "count", "counterexample"},
                                           {"worst_ulp", "worst_at"}));
  HostFinding finding;
  CLEAVE_ASSIGN_OR_RETURN(const std::string name, node["kind"].String());
  const std::optional<HostFailureKind> kind = FindHostFailureKind(name);
  if (!kind) {
    return node["kind"].Wrong(
        absl::StrCat("there is no kind of finding `", name, "`"));
  }
  finding.kind = *kind;
  CLEAVE_ASSIGN_OR_RETURN(finding.count, node["count"].Count());
  CLEAVE_ASSIGN_OR_RETURN(finding.example,
                          ReadCounterexample(node["counterexample"]));
  if (finding.kind == HostFailureKind::kInaccurate) {
    CLEAVE_ASSIGN_OR_RETURN(finding.worst_ulp, ReadNumber(node, "worst_ulp"));
  }
  if (node.Has("worst_at")) {
    CLEAVE_ASSIGN_OR_RETURN(finding.worst_at, node["worst_at"].String());
  }
  return finding;
}

absl::StatusOr<Verdict> ReadVerdict(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
      {"verdict", "samples"},
      {"strength", "worst_ulp", "worst_part_of_bound", "worst_at", "why",
       "notes", "counterexample", "findings"}));
  Verdict verdict;
  CLEAVE_ASSIGN_OR_RETURN(const std::string kind, node["verdict"].String());
  const std::optional<VerdictKind> known = FindVerdictKind(kind);
  if (!known) {
    return node["verdict"].Wrong(
        absl::StrCat("there is no verdict `", kind, "`"));
  }
  verdict.kind = *known;
  if (node.Has("strength") != (verdict.kind == VerdictKind::kAgrees)) {
    return node.Wrong("what agrees has a strength, and nothing else");
  }
  if (node.Has("strength")) {
    CLEAVE_ASSIGN_OR_RETURN(const std::string name, node["strength"].String());
    const std::optional<Strength> strength = FindStrength(name);
    if (!strength) {
      return node["strength"].Wrong(
          absl::StrCat("there is no strength `", name, "`"));
    }
    verdict.strength = *strength;
  }
  CLEAVE_ASSIGN_OR_RETURN(verdict.samples, node["samples"].Count());
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_ulp, ReadNumber(node, "worst_ulp"));
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_part,
                          ReadNumber(node, "worst_part_of_bound"));
  if (node.Has("worst_at")) {
    CLEAVE_ASSIGN_OR_RETURN(verdict.worst_at, node["worst_at"].String());
  }
  if (node.Has("why")) {
    CLEAVE_ASSIGN_OR_RETURN(verdict.why, node["why"].String());
  }
  if (node.Has("notes")) {
    CLEAVE_ASSIGN_OR_RETURN(verdict.notes, node["notes"].Strings());
  }
  if (node.Has("counterexample")) {
    CLEAVE_ASSIGN_OR_RETURN(verdict.counterexample,
                            ReadCounterexample(node["counterexample"]));
  } else if (verdict.kind == VerdictKind::kDisagrees) {
    return node.Wrong("what disagrees has a counterexample");
  }
  if (node.Has("findings")) {
    CLEAVE_RETURN_IF_ERROR(
        node["findings"].ForEach([&](const JsonNode& one) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(HostFinding finding, ReadFinding(one));
          verdict.findings.push_back(std::move(finding));
          return absl::OkStatus();
        }));
  }
  return verdict;
}

absl::StatusOr<OpReport> ReadOp(const std::string& name, const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
      {"place", "seconds", "loose_claim", "layers"}, {"certified"}));
  OpReport op;
  op.op = name;
  CLEAVE_ASSIGN_OR_RETURN(op.place, node["place"].String());
  CLEAVE_ASSIGN_OR_RETURN(op.seconds, node["seconds"].Number());
  CLEAVE_ASSIGN_OR_RETURN(op.loose_claim, node["loose_claim"].Bool());
  if (node.Has("certified")) {
    const JsonNode certified = node["certified"];
    CLEAVE_RETURN_IF_ERROR(certified.CheckMembers({"by", "date"}));
    Certified known;
    CLEAVE_ASSIGN_OR_RETURN(known.by, certified["by"].String());
    CLEAVE_ASSIGN_OR_RETURN(known.date, certified["date"].String());
    op.certified = std::move(known);
  }
  const JsonNode layers = node["layers"];
  CLEAVE_RETURN_IF_ERROR(layers.CheckObject());
  for (const auto& member : layers.value.items()) {
    const std::optional<Layer> layer = FindLayer(member.key());
    if (!layer) {
      return layers.Wrong(
          absl::StrCat("there is no layer `", member.key(), "`"));
    }
    CLEAVE_ASSIGN_OR_RETURN(op.layers[*layer],
                            ReadVerdict(layers[member.key()]));
  }
  // The text has the largest error of L3 of a loose claim.
  if (op.loose_claim && op.layers.count(Layer::kRounding) == 0) {
    return node["loose_claim"].Wrong("a loose claim without L3");
  }
  return op;
}

absl::StatusOr<UncoveredArm> ReadArm(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(
      node.CheckMembers({"place", "what", "text", "marked", "kind", "index"}));
  UncoveredArm arm;
  CLEAVE_ASSIGN_OR_RETURN(arm.place, node["place"].String());
  CLEAVE_ASSIGN_OR_RETURN(arm.what, node["what"].String());
  CLEAVE_ASSIGN_OR_RETURN(arm.text, node["text"].String());
  CLEAVE_ASSIGN_OR_RETURN(arm.marked, node["marked"].String());
  CLEAVE_ASSIGN_OR_RETURN(const std::string kind, node["kind"].String());
  if (kind != kLine && kind != kBranch) {
    return node["kind"].Wrong(
        absl::StrCat("neither `", kLine, "` nor `", kBranch, "`"));
  }
  arm.is_line = kind == kLine;
  CLEAVE_ASSIGN_OR_RETURN(const int64_t index, node["index"].Count());
  arm.index = static_cast<int>(index);
  return arm;
}

absl::StatusOr<RuleCoverage> ReadCoverage(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(
      node.CheckMembers({"item", "place", "lines", "covered_lines", "branches",
                         "covered_branches", "uncovered"}));
  RuleCoverage item;
  CLEAVE_ASSIGN_OR_RETURN(item.item, node["item"].String());
  CLEAVE_ASSIGN_OR_RETURN(item.place, node["place"].String());
  item.file = item.place.substr(0, item.place.rfind(':'));
  for (const auto& [member, value] :
       {std::pair("lines", &item.lines),
        std::pair("covered_lines", &item.covered_lines),
        std::pair("branches", &item.branches),
        std::pair("covered_branches", &item.covered_branches)}) {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t count, node[member].Count());
    *value = static_cast<int>(count);
  }
  CLEAVE_RETURN_IF_ERROR(
      node["uncovered"].ForEach([&](const JsonNode& one) -> absl::Status {
        CLEAVE_ASSIGN_OR_RETURN(UncoveredArm arm, ReadArm(one));
        item.uncovered.push_back(std::move(arm));
        return absl::OkStatus();
      }));
  return item;
}

}  // namespace

std::string CheckReport::ToJson() const {
  json object = {{"seed", seed}, {"ops", json::object()}};
  for (const OpReport& op : ops) {
    json layers = json::object();
    for (const auto& [layer, verdict] : op.layers) {
      layers[std::string(LayerName(layer))] = cleave::ToJson(verdict);
    }
    object["ops"][op.op] = {{"place", op.place},
                            {"seconds", op.seconds},
                            {"loose_claim", op.loose_claim},
                            {"layers", std::move(layers)}};
    if (op.certified.has_value()) {
      object["ops"][op.op]["certified"] = {{"by", op.certified->by},
                                           {"date", op.certified->date}};
    }
  }
  object["totals"] = TotalsJson(*this);
  for (const RuleCoverage& item : coverage) {
    object["coverage"].push_back(cleave::ToJson(item));
  }
  if (shard.has_value()) object[kShardMember] = ShardJson(*shard);
  // Messages may hold any bytes of a file.
  return object.dump(2, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<CheckReport> ReadCheckReport(const JsonNode& root) {
  CLEAVE_RETURN_IF_ERROR(
      root.CheckMembers({"seed", "ops", "totals"}, {"coverage", kShardMember}));
  CheckReport report;
  CLEAVE_ASSIGN_OR_RETURN(report.seed, root["seed"].Unsigned());
  const JsonNode ops = root["ops"];
  CLEAVE_RETURN_IF_ERROR(ops.CheckObject());
  for (const auto& member : ops.value.items()) {
    CLEAVE_ASSIGN_OR_RETURN(OpReport op,
                            ReadOp(member.key(), ops[member.key()]));
    report.ops.push_back(std::move(op));
  }
  if (root.Has("coverage")) {
    CLEAVE_RETURN_IF_ERROR(
        root["coverage"].ForEach([&](const JsonNode& node) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(RuleCoverage item, ReadCoverage(node));
          report.coverage.push_back(std::move(item));
          return absl::OkStatus();
        }));
  }
  if (root.Has(kShardMember)) {
    CLEAVE_ASSIGN_OR_RETURN(report.shard, ReadRunShard(root));
  }
  // They follow from the ops.
  if (TotalsJson(report) != root["totals"].value) {
    return root["totals"].Wrong("not the totals of the ops");
  }
  return report;
}

}  // namespace cleave
