#include "transforms/aot/aot_log.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "nlohmann/json.hpp"

namespace cleave::aot {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

Json JsonOf(const AotTrace& trace) {
  Json phases = Json::array();
  for (const AotPhase& phase : trace.phases) {
    Json json = {{"name", phase.name}, {"milliseconds", phase.milliseconds}};
    if (!phase.graph.empty()) {
      json["nodes"] = phase.nodes;
      json["graph"] = phase.graph;
    }
    phases.push_back(std::move(json));
  }
  return {{"why", trace.why},
          {"active", trace.active},
          {"num_params_buffers", trace.num_params_buffers},
          {"recompute_loops", trace.recompute_loops},
          {"expand", trace.expand},
          {"outputs", trace.outputs},
          {"saved", trace.saved},
          {"decomposed", trace.decomposed},
          {"preserved", trace.preserved},
          {"replaced", trace.replaced},
          {"phases", std::move(phases)}};
}

AotTrace TraceOf(const Json& json) {
  AotTrace trace;
  json.at("why").get_to(trace.why);
  json.at("active").get_to(trace.active);
  json.at("num_params_buffers").get_to(trace.num_params_buffers);
  json.at("recompute_loops").get_to(trace.recompute_loops);
  json.at("expand").get_to(trace.expand);
  json.at("outputs").get_to(trace.outputs);
  json.at("saved").get_to(trace.saved);
  json.at("decomposed").get_to(trace.decomposed);
  json.at("preserved").get_to(trace.preserved);
  json.at("replaced").get_to(trace.replaced);
  for (const Json& entry : json.at("phases")) {
    AotPhase phase;
    entry.at("name").get_to(phase.name);
    entry.at("milliseconds").get_to(phase.milliseconds);
    if (entry.contains("graph")) {
      entry.at("graph").get_to(phase.graph);
      entry.at("nodes").get_to(phase.nodes);
    }
    trace.phases.push_back(std::move(phase));
  }
  return trace;
}

}  // namespace

std::string AotLog::ToJson() const {
  Json list = Json::array();
  for (const AotTrace& trace : traces) list.push_back(JsonOf(trace));
  const Json json = {{"cleave_aot_log", kVersion}, {"traces", std::move(list)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<AotLog> AotLog::FromJson(absl::string_view text) {
  // The library reports what is wrong by exceptions.
  try {
    const Json json = Json::parse(text.begin(), text.end());
    if (!json.is_object() || json.value("cleave_aot_log", 0) != kVersion) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not a log of version ", kVersion, ": `cleave_aot_log` is missing"));
    }
    AotLog log;
    for (const Json& entry : json.at("traces")) {
      log.traces.push_back(TraceOf(entry));
    }
    return log;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a log: ", error.what()));
  }
}

PhaseClock::PhaseClock(AotTrace* log)
    : log_(log), last_(std::chrono::steady_clock::now()) {}

void PhaseClock::Phase(absl::string_view name, const Graph* graph) {
  if (log_ == nullptr) return;
  AotPhase phase;
  phase.milliseconds = std::chrono::duration<double, std::milli>(
                           std::chrono::steady_clock::now() - last_)
                           .count();
  phase.name = std::string(name);
  if (graph != nullptr) {
    phase.graph = PrintGraph(*graph);
    phase.nodes = graph->size();
  }
  log_->phases.push_back(std::move(phase));
  last_ = std::chrono::steady_clock::now();
}

}  // namespace cleave::aot
