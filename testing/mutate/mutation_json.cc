// MutationReport as JSON, there and back.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "testing/json_node.h"
#include "testing/mutate/merge_mutations.h"
#include "testing/mutate/mutate.h"
#include "testing/mutate/mutation_tally.h"
#include "testing/run_shard.h"

namespace cleave {
namespace {

using json = nlohmann::ordered_json;

// The member of a shard's report with all that it drew.
constexpr char kDrawnMember[] = "drawn";

constexpr std::pair<MutantFate, const char*> kFates[] = {
    {MutantFate::kRejected, "rejected"},
    {MutantFate::kKilled, "killed"},
    {MutantFate::kSurvived, "survived"},
    {MutantFate::kProvedEquivalent, "proved_equivalent"},
};

const char* FateName(MutantFate fate) {
  for (const auto& [known, name] : kFates) {
    if (known == fate) return name;
  }
  return "";
}

json TallyJson(const Tally& tally) {
  return {{"killed", tally.killed},
          {"survived", tally.survived},
          {"proved_equivalent", tally.proved_equivalent},
          {"allclose_killed", tally.allclose_killed}};
}

json ToJson(const MutantReport& mutant) {
  return {{"rule", mutant.rule},
          {"operator", std::string(MutationOperatorName(mutant.op))},
          {"part", std::string(MutatedPartName(mutant.part))},
          {"place", mutant.place},
          {"before", mutant.before},
          {"after", mutant.after},
          {"text", mutant.text},
          {"verdicts", mutant.verdicts},
          {"elementwise", mutant.elementwise},
          {"allclose_kills", mutant.allclose_kills},
          {"seconds", mutant.seconds}};
}

// All that were drawn, in that order. Mutants that live have more in the lists
// of them.
json DrawnJson(const MutationReport& report) {
  std::map<int64_t, json> drawn;
  for (const MutantReport& mutant : report.mutants) {
    json& one = drawn[mutant.number];
    one = {{"number", mutant.number}, {"fate", FateName(mutant.fate)}};
    if (mutant.fate != MutantFate::kKilled) continue;
    one["operator"] = std::string(MutationOperatorName(mutant.op));
    one["layer"] = std::string(LayerName(*mutant.layer));
    one["elementwise"] = mutant.elementwise;
    one["allclose_kills"] = mutant.allclose_kills;
  }
  for (const RejectedMutant& rejected : report.rejected) {
    json& one = drawn[rejected.number];
    one = {{"number", rejected.number},
           {"fate", FateName(MutantFate::kRejected)}};
    if (!rejected.refuted.empty()) one["refuted"] = rejected.refuted;
  }
  json list = json::array();
  for (auto& [number, one] : drawn) list.push_back(std::move(one));
  return list;
}

absl::StatusOr<MutationOperator> ReadOperator(const JsonNode& node) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string name, node.String());
  const std::optional<MutationOperator> op = FindMutationOperator(name);
  if (op) return *op;
  return node.Wrong(absl::StrCat("there is no operator `", name, "`"));
}

// One that lives.
absl::StatusOr<MutantReport> ReadMutant(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
      {"rule", "operator", "part", "place", "before", "after", "text",
       "verdicts", "elementwise", "allclose_kills", "seconds"}));
  MutantReport mutant;
  for (const auto& [member, value] :
       {std::pair("rule", &mutant.rule), std::pair("place", &mutant.place),
        std::pair("before", &mutant.before), std::pair("after", &mutant.after),
        std::pair("text", &mutant.text)}) {
    CLEAVE_ASSIGN_OR_RETURN(*value, node[member].String());
  }
  CLEAVE_ASSIGN_OR_RETURN(mutant.op, ReadOperator(node["operator"]));
  CLEAVE_ASSIGN_OR_RETURN(const std::string part, node["part"].String());
  const std::optional<MutatedPart> known = FindMutatedPart(part);
  if (!known) {
    return node["part"].Wrong(absl::StrCat("there is no part `", part, "`"));
  }
  mutant.part = *known;
  CLEAVE_ASSIGN_OR_RETURN(mutant.verdicts, node["verdicts"].StringMap());
  CLEAVE_ASSIGN_OR_RETURN(mutant.elementwise, node["elementwise"].Bool());
  CLEAVE_ASSIGN_OR_RETURN(mutant.allclose_kills, node["allclose_kills"].Bool());
  CLEAVE_ASSIGN_OR_RETURN(mutant.seconds, node["seconds"].Number());
  return mutant;
}

absl::Status ReadKilled(const JsonNode& node, MutantReport& mutant) {
  CLEAVE_RETURN_IF_ERROR(
      node.CheckMembers({"number", "fate", "operator", "layer", "elementwise",
                         "allclose_kills"}));
  CLEAVE_ASSIGN_OR_RETURN(mutant.op, ReadOperator(node["operator"]));
  CLEAVE_ASSIGN_OR_RETURN(const std::string layer, node["layer"].String());
  mutant.layer = FindLayer(layer);
  if (!mutant.layer) {
    return node["layer"].Wrong(absl::StrCat("there is no layer `", layer, "`"));
  }
  CLEAVE_ASSIGN_OR_RETURN(mutant.elementwise, node["elementwise"].Bool());
  CLEAVE_ASSIGN_OR_RETURN(mutant.allclose_kills, node["allclose_kills"].Bool());
  return absl::OkStatus();
}

// Takes the next of `living`, which are in the order in which they were drawn.
absl::Status TakeLiving(const JsonNode& node, std::vector<MutantReport>& living,
                        size_t& next, MutantReport& mutant) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers({"number", "fate"}));
  if (next == living.size()) {
    return node.Wrong("the list of those that live ends before it");
  }
  mutant = std::move(living[next++]);
  return absl::OkStatus();
}

}  // namespace

std::string MutationReport::ToJson() const {
  Tally all;
  Tally elementwise;
  std::vector<Tally> by_operator(kNumMutationOperators);
  json layers = json::object();
  json survivors = json::array();
  json equivalents = json::array();
  for (const MutantReport& mutant : mutants) {
    all.Add(mutant);
    if (mutant.elementwise) elementwise.Add(mutant);
    by_operator[static_cast<int>(mutant.op)].Add(mutant);
    if (mutant.layer) {
      json& count = layers[std::string(LayerName(*mutant.layer))];
      count = (count.is_null() ? 0 : count.get<int>()) + 1;
    }
    if (mutant.fate == MutantFate::kSurvived) {
      survivors.push_back(cleave::ToJson(mutant));
    } else if (mutant.fate == MutantFate::kProvedEquivalent) {
      equivalents.push_back(cleave::ToJson(mutant));
    }
  }
  json operators = json::object();
  for (int op = 0; op < kNumMutationOperators; ++op) {
    operators[std::string(MutationOperatorName(
        static_cast<MutationOperator>(op)))] = TallyJson(by_operator[op]);
  }
  json object = {{"seed", seed},
                 {"seconds", seconds},
                 {"mutations", mutations},
                 {"rejected", rejected.size()},
                 {"totals", TallyJson(all)},
                 {"elementwise_values", TallyJson(elementwise)},
                 {"operators", std::move(operators)},
                 {"layers", std::move(layers)},
                 {"refuted_rules", Refuted()},
                 {"survivors", std::move(survivors)},
                 {"proved_equivalent", std::move(equivalents)}};
  if (shard.has_value()) {
    object[kDrawnMember] = DrawnJson(*this);
    object[kShardMember] = json(ShardJson(*shard));
  }
  return object.dump(2, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<MutationReport> ReadMutationShard(const JsonNode& root) {
  MutationReport report;
  CLEAVE_ASSIGN_OR_RETURN(report.shard, ReadRunShard(root));
  CLEAVE_RETURN_IF_ERROR(root.CheckMembers(
      {"seed", "seconds", "mutations", "rejected", "totals",
       "elementwise_values", "operators", "layers", "refuted_rules",
       "survivors", "proved_equivalent", kDrawnMember, kShardMember}));
  CLEAVE_ASSIGN_OR_RETURN(report.seed, root["seed"].Unsigned());
  CLEAVE_ASSIGN_OR_RETURN(report.seconds, root["seconds"].Number());
  CLEAVE_ASSIGN_OR_RETURN(report.mutations, root["mutations"].Count());
  std::vector<MutantReport> survivors;
  std::vector<MutantReport> equivalents;
  for (const auto& [member, list] :
       {std::pair("survivors", &survivors),
        std::pair("proved_equivalent", &equivalents)}) {
    auto* const mutants = list;
    CLEAVE_RETURN_IF_ERROR(
        root[member].ForEach([&](const JsonNode& node) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(MutantReport mutant, ReadMutant(node));
          mutants->push_back(std::move(mutant));
          return absl::OkStatus();
        }));
  }
  size_t next_survivor = 0;
  size_t next_equivalent = 0;
  int64_t expected = report.shard->number - 1;
  CLEAVE_RETURN_IF_ERROR(
      root[kDrawnMember].ForEach([&](const JsonNode& node) -> absl::Status {
        CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
            {"number", "fate"},
            {"operator", "layer", "elementwise", "allclose_kills", "refuted"}));
        CLEAVE_ASSIGN_OR_RETURN(const int64_t number, node["number"].Count());
        if (number != expected) {
          return node["number"].Wrong(
              absl::StrCat("the shard's next is number ", expected));
        }
        expected += report.shard->shards;
        CLEAVE_ASSIGN_OR_RETURN(const std::string fate, node["fate"].String());
        MutantReport mutant;
        if (fate == FateName(MutantFate::kRejected)) {
          CLEAVE_RETURN_IF_ERROR(
              node.CheckMembers({"number", "fate"}, {"refuted"}));
          RejectedMutant rejected{number, ""};
          if (node.Has("refuted")) {
            CLEAVE_ASSIGN_OR_RETURN(rejected.refuted, node["refuted"].String());
          }
          report.rejected.push_back(std::move(rejected));
          return absl::OkStatus();
        }
        if (fate == FateName(MutantFate::kKilled)) {
          CLEAVE_RETURN_IF_ERROR(ReadKilled(node, mutant));
          mutant.fate = MutantFate::kKilled;
        } else if (fate == FateName(MutantFate::kSurvived)) {
          CLEAVE_RETURN_IF_ERROR(
              TakeLiving(node, survivors, next_survivor, mutant));
          mutant.fate = MutantFate::kSurvived;
        } else if (fate == FateName(MutantFate::kProvedEquivalent)) {
          CLEAVE_RETURN_IF_ERROR(
              TakeLiving(node, equivalents, next_equivalent, mutant));
          mutant.fate = MutantFate::kProvedEquivalent;
        } else {
          return node["fate"].Wrong(
              absl::StrCat("there is no fate `", fate, "`"));
        }
        mutant.number = number;
        report.mutants.push_back(std::move(mutant));
        return absl::OkStatus();
      }));
  if (next_survivor != survivors.size() ||
      next_equivalent != equivalents.size()) {
    return root[kDrawnMember].Wrong("more live than were drawn");
  }
  return report;
}

}  // namespace cleave
